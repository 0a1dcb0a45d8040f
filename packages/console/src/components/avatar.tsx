import './avatar.css'

/** Initials of a person. The name is in the tooltip and for screen readers. */
export const Avatar = ({ name, size }: { readonly name: string; readonly size?: 'small' }) => (
  <span className="avatar" data-size={size} title={name}>
    <span aria-hidden="true">{initialsOf(name)}</span>
    <span className="visually-hidden">{name}</span>
  </span>
)

export function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '')
  const [first = '?', ...rest] = words
  const last = rest.at(-1)
  const letters = last === undefined ? first.slice(0, 2) : first.slice(0, 1) + last.slice(0, 1)
  return letters.toUpperCase()
}
