import { setTimeout as pause } from 'node:timers/promises'
import type { AttemptContext, Message } from '@redrive/runtime'

/** Charges an order; in a real service this calls a payment gateway with the signal. */
export async function charge({ id }: Message, { signal }: AttemptContext): Promise<void> {
  console.log(`charging ${id}`)
  await pause(1_000, undefined, { signal })
  console.log(`charged ${id}`)
}

export async function sendMail({ id }: Message): Promise<void> {
  console.log(`sent mail ${id}`)
}
