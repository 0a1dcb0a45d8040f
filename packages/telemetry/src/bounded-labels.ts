import { LABEL_VALUES, type Label, type Labels } from './metrics.ts'

/** The value of a label for all values above the bound. */
const OTHER = 'other'
/** 100 characters: the name of an error type can contain any text. */
const VALUE_LENGTH = 100

/** Limits the values of each label, because each combination of values is a series that is kept in memory. */
export class BoundedLabels {
  readonly #seen = new Map<Label, Set<string>>()

  /** Returns the labels; a value above the bound becomes `other`. */
  bound(labels: Labels): Labels {
    const bounded: Partial<Record<Label, string>> = {}
    for (const [label, value] of Object.entries(labels) as [Label, string][]) {
      bounded[label] = this.#boundValue(label, value.slice(0, VALUE_LENGTH))
    }
    return bounded
  }

  #boundValue(label: Label, value: string): string {
    const seen = this.#seen.get(label) ?? new Set()
    this.#seen.set(label, seen)
    if (seen.has(value)) return value
    if (seen.size >= LABEL_VALUES) return OTHER
    seen.add(value)
    return value
  }
}
