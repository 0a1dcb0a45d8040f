import {
  type Mask,
  maskBody,
  type PatchOperation,
  resolveMask,
  type ResolvedMask,
} from '@redrive/catalog'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canRevealMasked } from '../src/operations/masked-values.ts'

/** Few names, so that masks, bodies and patches often meet. */
const NAMES = ['card', 'Card', 'number', 'items', 'pin', 'x', 'y'] as const
const STEPS = [...NAMES, '0', '1', '-']
const MASKS = ['/card/number', '/card', '/items/0/pin', '/items/*/pin', '/items/1', '/*/number']

const mask: fc.Arbitrary<Mask> = fc.record({
  pointer: fc.constantFrom(...MASKS),
  optional: fc.boolean(),
})

/** Bodies whose texts are all different, so that each can be found again. Some contain JSON inside a text. */
const body = fc
  .letrec((tie) => ({
    root: fc.oneof(
      {
        weight: 5,
        arbitrary: fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { minKeys: 3 }),
      },
      { weight: 1, arbitrary: fc.array(tie('value'), { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: tie('value') },
    ),
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constant('leaf'),
      fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 4 }),
      fc.array(tie('value'), { maxLength: 3 }),
      fc
        .dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 2 })
        .map((one) => ({ json: one })),
    ),
  }))
  .root.map((one) => {
    let count = 0
    const numbered = (value: unknown): unknown => {
      if (value === 'leaf') return `v${(count += 1)}v`
      if (Array.isArray(value)) return value.map(numbered)
      const entries = Object.entries(value as object).map(([name, inner]) => [
        name,
        numbered(inner),
      ])
      const found = Object.fromEntries(entries) as Record<string, unknown>
      return 'json' in found ? JSON.stringify(found['json']) : found
    }
    return numbered(one)
  })

const path = fc
  .oneof(
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...NAMES)) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...STEPS)) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 3 }) },
  )
  .map((steps) => `/${steps.join('/')}`)
const given = fc.constantFrom<unknown>('new', { number: 'new' }, { card: { number: 'new' } }, [
  { pin: 'new' },
])
const operation: fc.Arbitrary<PatchOperation> = fc.oneof(
  fc.record({ op: fc.constantFrom('add' as const, 'replace' as const), path, value: given }),
  fc.record({ op: fc.constant('remove' as const), path }),
  fc.record({ op: fc.constantFrom('move' as const, 'copy' as const), path, from: path }),
)

/** Applies one operation of RFC 6902 to a copy. Returns undefined if it is not possible. */
function applied(target: unknown, one: PatchOperation): unknown {
  const root = { '': structuredClone(target) }
  const holderOf = (pointer: string): [Record<string, unknown> | unknown[], string] | undefined => {
    const steps = pointer.split('/')
    let holder: unknown = root
    for (const step of steps.slice(0, -1)) {
      if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, step))
        return undefined
      holder = (holder as Record<string, unknown>)[step]
    }
    if (typeof holder !== 'object' || holder === null) return undefined
    return [holder as Record<string, unknown>, steps.at(-1) ?? '']
  }
  const read = (pointer: string) => {
    const [holder, step] = holderOf(pointer) ?? [{}, '']
    return Object.hasOwn(holder, step) ? (holder as Record<string, unknown>)[step] : undefined
  }
  const write = (pointer: string, value: unknown): boolean => {
    const found = holderOf(pointer)
    if (found === undefined) return false
    const [holder, step] = found
    if (!Array.isArray(holder)) holder[step] = value
    else if (step === '-') holder.push(value)
    else if (/^\d$/.test(step) && Number(step) <= holder.length)
      holder.splice(Number(step), 0, value)
    else return false
    return true
  }
  const remove = (pointer: string): boolean => {
    const [holder, step] = holderOf(pointer) ?? [{}, '']
    if (!Object.hasOwn(holder, step) || step === 'length') return false
    if (Array.isArray(holder)) holder.splice(Number(step), 1)
    else delete (holder as Record<string, unknown>)[step]
    return true
  }
  const isDone = {
    add: () => write(one.path, (one as { value: unknown }).value),
    replace: () => remove(one.path) && write(one.path, (one as { value: unknown }).value),
    remove: () => remove(one.path),
    move: () => {
      const value = read((one as { from: string }).from)
      return value !== undefined && remove((one as { from: string }).from) && write(one.path, value)
    },
    copy: () => {
      const value = read((one as { from: string }).from)
      return value !== undefined && write(one.path, structuredClone(value))
    },
    test: () => false,
  }[one.op]()
  return isDone ? root[''] : undefined
}

/** The texts that a person without "view_unmasked" sees. */
function visible(value: unknown, masks: readonly ResolvedMask[]): ReadonlySet<string> {
  const shown = maskBody(value, masks)
  const text = shown.unmatched === undefined ? JSON.stringify(shown.value) : ''
  return new Set(text.match(/v\d+v/g))
}

test('an allowed patch shows no value that was hidden before, in 10,000 random bodies, masks and patches', () => {
  let allowed = 0
  fc.assert(
    fc.property(
      body,
      fc.array(mask, { minLength: 1, maxLength: 2 }),
      fc.array(operation, { minLength: 1, maxLength: 3 }),
      (before, given, patch) => {
        const masks = given.map((one) => resolveMask(one) as ResolvedMask)
        if (canRevealMasked(patch, masks)) return
        const after = patch.reduce<unknown>(
          (value, one) => (value === undefined ? undefined : applied(value, one)),
          before,
        )
        if (after === undefined) return
        allowed += 1
        const seen = visible(before, masks)
        for (const one of visible(after, masks)) expect(seen).toContain(one)
      },
    ),
    { numRuns: 10_000 },
  )
  // Otherwise the patches would not meet the bodies.
  expect(allowed).toBeGreaterThan(1_000)
})

test.each([
  ['/items/-', '/items/1', true],
  ['/items/-', '/items/1/pin', true],
  ['/items/-', '/card', false],
])('an item added at %s can make the mask %s match: %s', (at, pointer, canReveal) => {
  const masks = [resolveMask(pointer) as ResolvedMask]
  expect(canRevealMasked([{ op: 'add', path: at, value: 1 }], masks)).toBe(canReveal)
})
