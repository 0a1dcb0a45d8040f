import './checkbox.css'

export interface CheckboxProps {
  readonly label: string
  readonly isChecked: boolean
  readonly isPartly?: boolean
  readonly onChange: (isChecked: boolean, withRange: boolean) => void
}

/** A checkbox with a name for screen readers. With Shift it selects a range. */
export const Checkbox = ({ label, isChecked, isPartly = false, onChange }: CheckboxProps) => (
  <input
    type="checkbox"
    className="checkbox"
    aria-label={label}
    checked={isChecked}
    ref={(element) => {
      if (element !== null) element.indeterminate = isPartly
    }}
    onChange={({ target, nativeEvent }) =>
      onChange(target.checked, (nativeEvent as MouseEvent).shiftKey)
    }
  />
)
