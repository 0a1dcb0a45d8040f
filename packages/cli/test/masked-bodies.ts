import fc from 'fast-check'

/** Few names, so that masks, bodies and patches often meet. */
const NAMES = ['card', 'Card', 'number', 'items', 'pin', 'x', 'y'] as const
const STEPS = [...NAMES, '0', '1', '-']
const POINTERS = ['/card/number', '/card', '/items/0/pin', '/items/*/pin', '/items/1', '/*/number']

export interface Mask {
  readonly pointer: string
  readonly optional: boolean
}

export const masks: fc.Arbitrary<readonly Mask[]> = fc.uniqueArray(
  fc.record({ pointer: fc.constantFrom(...POINTERS), optional: fc.boolean() }),
  { minLength: 1, maxLength: 3, selector: ({ pointer }) => pointer },
)

/** A body whose values are `text`, `number` and JSON inside a text. */
const shape = fc.letrec((tie) => ({
  root: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { minKeys: 3 }),
    },
    { weight: 1, arbitrary: tie('value') },
  ),
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom('text', 'number'),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 4 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .dictionary(fc.constantFrom(...NAMES), tie('value'), { minKeys: 1, maxKeys: 2 })
      .map((json) => ({ json })),
  ),
})).root

/** One body, or a list of bodies: a mask applies to each item of a list. */
export const bodies = (listLength: number): fc.Arbitrary<unknown> =>
  fc.oneof(shape, fc.array(shape, { minLength: listLength, maxLength: listLength }))

/** The first marker. Markers have ten digits, so no detector and no timestamp looks like one. */
let marker = 9_000_000_000

/** Returns a value that no other body has. */
export const newMarker = (): number => (marker += 1)

/** Matches markers in any output. */
export const MARKERS = /(?<![0-9a-z])v?(9\d{9})v?(?![0-9a-z])/g

/** Gives each value of a body a marker. */
export function marked(body: unknown): unknown {
  if (body === 'text') return `v${newMarker()}v`
  if (body === 'number') return newMarker()
  if (Array.isArray(body)) return body.map(marked)
  const entries = Object.entries(body as object).map(([name, value]) => [name, marked(value)])
  const found = Object.fromEntries(entries) as Record<string, unknown>
  return 'json' in found ? JSON.stringify(found['json']) : found
}

/** A step into a body: a key, or the position in a list. */
type Step = string | number

/** Whether a mask hides the value at this path. This is the definition of a mask, independent of the server. */
function hides(mask: readonly string[], path: readonly Step[]): boolean {
  const [wanted, ...restOfMask] = mask
  const [step, ...rest] = path
  if (wanted === undefined) return true
  if (step === undefined) return false
  if (typeof step === 'string')
    return (
      (wanted === '*' || wanted.toLowerCase() === step.toLowerCase()) && hides(restOfMask, rest)
    )
  // A name continues in every item of a list. A position means only that item. A star means both.
  if (wanted === '*') return hides(restOfMask, rest) || hides(mask, rest)
  return /^\d+$/.test(wanted)
    ? wanted === String(step) && hides(restOfMask, rest)
    : hides(mask, rest)
}

interface Node {
  readonly path: readonly Step[]
  /** The marker of a text or number. */
  readonly marker: string | undefined
}

function* nodesOf(value: unknown, path: readonly Step[] = []): Generator<Node> {
  const isLeaf = typeof value === 'string' || typeof value === 'number'
  const text = isLeaf ? String(value) : undefined
  const json = text !== undefined && /^[{[]/.test(text) ? (JSON.parse(text) as unknown) : undefined
  const inner = json ?? value
  yield { path, marker: json === undefined ? text?.replaceAll('v', '') : undefined }
  if (typeof inner !== 'object' || inner === null) return
  const entries: (readonly [Step, unknown])[] = Array.isArray(inner)
    ? inner.map((one, at) => [at, one])
    : Object.entries(inner)
  for (const [step, one] of entries) yield* nodesOf(one, [...path, step])
}

export interface Markers {
  readonly hidden: readonly string[]
  readonly shown: readonly string[]
}

/** Returns the markers of a body that a person without permission to unmask may and may not see. */
export function markersOf(body: unknown, given: readonly Mask[]): Markers {
  const nodes = [...nodesOf(body)]
  const steps = given.map(({ pointer }) => pointer.split('/').slice(1))
  const isUnmatched = given.some(
    ({ optional }, at) => !optional && !nodes.some(({ path }) => hides(steps[at] ?? [], path)),
  )
  const isHidden = ({ path }: Node) => isUnmatched || steps.some((mask) => hides(mask, path))
  const valued = nodes.filter((node) => node.marker !== undefined)
  const markers = (all: readonly Node[]) => all.map((node) => node.marker ?? '')
  return {
    hidden: markers(valued.filter(isHidden)),
    shown: markers(valued.filter((node) => !isHidden(node))),
  }
}

const path = fc
  .oneof(
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...NAMES)) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...STEPS)) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 3 }) },
  )
  .map((steps) => `/${steps.join('/')}`)
const value = fc.constantFrom<unknown>('new', { number: 'new' }, { card: { number: 'new' } }, [
  { pin: 'new' },
])

/** An operation that reads a value which some masks hide. */
const reading = fc.record({
  op: fc.constantFrom('move', 'copy'),
  from: fc.constantFrom('/card', '/card/number', '/items', '/items/0/pin', '/items/1'),
  path: fc.constantFrom('/x', '/y', '/pin'),
})
const any = fc.oneof(
  fc.record({ op: fc.constantFrom('add', 'replace', 'test'), path, value }),
  fc.record({ op: fc.constant('remove'), path }),
  fc.record({ op: fc.constantFrom('move', 'copy'), path, from: path }),
)

/** A JSON Patch for a body, or for one item of a list. */
export const patches: fc.Arbitrary<readonly object[]> = fc
  .tuple(
    fc.array(fc.oneof(reading, any), { minLength: 1, maxLength: 2 }),
    fc.constantFrom('', '', '/0', '/1'),
  )
  .map(([operations, item]) =>
    operations.map((one) => ({
      ...one,
      path: item + one.path,
      ...('from' in one ? { from: item + one.from } : {}),
    })),
  )
