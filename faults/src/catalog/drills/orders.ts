import { randomUUID } from 'node:crypto'
import type { OutboundEvent } from '@redrive/runtime'
import { SEEN, sampleOf, UNSEEN } from '../../families/families.ts'
import type { Family } from '../../families/family.ts'

/** Content of a message: how it fails until the bug is fixed, and whether it fails again. */
export interface Order {
  readonly id: string
  readonly family: string
  readonly seed: number
  readonly failsAgain: boolean
}

const COUNT = 50
const isThrown = (family: Family) => 'thrown' in sampleOf(family, 1)
const [unseen, seen] = [UNSEEN.filter(isThrown), SEEN.filter(isThrown)]
const others = COUNT - unseen.length

/** 50 families of thrown errors: all of the held-out ones, and an even selection of the others. */
export const FAMILIES: readonly Family[] = [
  ...unseen,
  ...Array.from(
    { length: others },
    (_, at) => seen[Math.floor((at * seen.length) / others)] as Family,
  ),
]
const byName = new Map(FAMILIES.map((family) => [family.name, family]))

export function failureOf({ family, seed }: Order): unknown {
  const known = byName.get(family)
  if (known === undefined) return new Error('price is missing')
  const sample = sampleOf(known, seed)
  return 'thrown' in sample ? sample.thrown : undefined
}

/**
 * One in 49 orders of the second half fails again, because the canary must not contain any. 49 does
 * not divide 50, so several families are affected.
 */
const AGAIN_EVERY = 49

export const ordersOf = (count: number): readonly Order[] =>
  Array.from({ length: count }, (_, at) => ({
    id: randomUUID(),
    family: FAMILIES[at % FAMILIES.length]?.name ?? '',
    seed: at,
    failsAgain: at >= count / 2 && at % AGAIN_EVERY === 0,
  }))

export const eventOf = (order: Order): OutboundEvent => ({
  ...{ id: order.id, key: order.id, type: 'order.placed', lane: undefined, at: Date.now() },
  ...{ contentType: 'application/json', headers: {} },
  bytes: Buffer.from(JSON.stringify(order)),
})
