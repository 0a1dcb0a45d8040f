import type { FAILURE_CLASSES } from '@redrive/api/enums'
import { Icon } from './icon.tsx'
import './failure-class.css'

export type FailureClassName = (typeof FAILURE_CLASSES)[number]

/** A failure class: icon with the colour of the class, and its name. */
export const FailureClass = ({ name }: { readonly name: FailureClassName }) => (
  <span className="failure-class">
    <span data-class={name}>
      <Icon name={`class-${name}`} size={14} />
    </span>
    {name}
  </span>
)
