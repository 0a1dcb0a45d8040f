import { type IconName, ICONS, type MarkName, MARKS } from './shapes.tsx'
import './icon.css'

/** The meaning of a colour. */
export type Tone = 'bad' | 'warn' | 'good' | 'run' | 'idle'

export interface IconProps {
  readonly name: IconName
  readonly size?: number
  readonly className?: string
}

/** A decorative icon. Text next to it carries the meaning. */
export const Icon = ({ name, size = 16, className = '' }: IconProps) => (
  <svg
    className={`icon ${className}`}
    width={size}
    height={size}
    viewBox="0 0 16 16"
    aria-hidden="true"
  >
    {ICONS[name]}
  </svg>
)

export interface MarkProps {
  readonly shape: MarkName
  readonly tone?: Tone
  readonly size?: number
}

/** The shape of a status. The word next to it carries the meaning. */
export const Mark = ({ shape, tone = 'idle', size = 12 }: MarkProps) => (
  <svg
    className="mark"
    data-tone={tone}
    width={size}
    height={size}
    viewBox="0 0 12 12"
    aria-hidden="true"
  >
    {MARKS[shape]}
  </svg>
)

export const Logo = ({ size = 20 }: { readonly size?: number }) => (
  <svg className="logo" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
    <path d="M4 10a6 6 0 1 1 1.8 4.3" />
    <path d="M1.2 8.2 4 11l2.9-2.7" />
    <circle cx="10" cy="10" r="2" />
  </svg>
)
