import './kbd.css'

/** Keys to press, separated by spaces: `g o`, `Ctrl K`. */
export const Kbd = ({ keys }: { readonly keys: string }) => (
  <span className="kbd">
    {keys.split(' ').map((key) => (
      <kbd key={key}>{key}</kbd>
    ))}
  </span>
)
