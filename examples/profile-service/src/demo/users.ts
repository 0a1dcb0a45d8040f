import type { UserEvent } from '../events.ts'

type Personal = Extract<UserEvent, { type: 'user.updated' }>['data']

/** Creates events of a few users, and computes the expected profiles. */
export class Users {
  readonly #profiles = new Map<string, Personal>()
  readonly #began = Date.now()
  #made = 0

  get made(): number {
    return this.#made
  }

  register(name: string): UserEvent {
    const data = this.#personal(name, 'Example')
    this.#profiles.set(data.subject, data)
    return { type: 'user.registered', data }
  }

  rename(name: string, lastName: string): UserEvent {
    const data = this.#personal(name, lastName)
    this.#profiles.set(data.subject, data)
    return { type: 'user.updated', data }
  }

  delete(name: string): UserEvent {
    const { subject, occurredAt } = this.#personal(name, '')
    this.#profiles.delete(subject)
    return { type: 'user.deleted', data: { subject, occurredAt } }
  }

  /** Returns one line for each profile, as the table should contain it. */
  expected(): readonly string[] {
    return [...this.#profiles.values()].map((one) => lineOf(one)).sort()
  }

  #personal(name: string, lastName: string): Personal {
    this.#made += 1
    const subject = `user-${name}`
    // One millisecond apart, so that later events have later times.
    const occurredAt = new Date(this.#began + this.#made).toISOString()
    return { subject, email: `${name}@example.com`, firstName: name, lastName, occurredAt }
  }
}

export const lineOf = ({
  subject,
  email,
  firstName,
  lastName,
}: Omit<Personal, 'occurredAt'>): string => `${subject} ${email} ${firstName} ${lastName}`
