import { readFile } from 'node:fs/promises'
import { deadLetterQueue, quarantineQueue } from '@redrive/memory'
import { CAPABILITIES } from '@redrive/memory/internal'
import type { Capabilities } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import {
  exerciseTransport,
  FakeClock,
  type RunnableTest,
  type SkippedScenario,
} from '../src/index.ts'
import { memoryFixture } from '../src/memory-world.ts'
import * as broken from './broken.ts'
import { KILLS } from './lease-transport/kills.ts'

interface Collected {
  readonly name: string
  readonly run: RunnableTest
}

/** Returns the suite as a list, to be run one by one. */
function collect(
  open: () => broken.BrokenWorld,
  { skip = [], capabilities = CAPABILITIES }: CollectOptions = {},
): { readonly tests: readonly Collected[]; readonly skipped: readonly string[] } {
  const tests: Collected[] = []
  const skipped: string[] = []
  const add = (name: string, run: RunnableTest) => void tests.push({ name, run })
  exerciseTransport({
    runner: {
      describe: (_, define) => define(),
      it: Object.assign(add, { skip: (name: string) => void skipped.push(name) }),
    },
    name: 'under test',
    capabilities,
    open,
    restartBroker: (world) => world.restart(),
    skip,
  })
  return { tests, skipped }
}

interface CollectOptions {
  readonly skip?: readonly SkippedScenario[]
  readonly capabilities?: Capabilities
}

const STRESS = 'stress: the whole list, ten times in parallel'

/** Returns the names of the failed scenarios, each with its error. */
async function failures(open: () => broken.BrokenWorld): Promise<Map<string, unknown>> {
  const failed = new Map<string, unknown>()
  for (const { name } of collect(open).tests) {
    if (name === STRESS) continue
    // A separate suite for each, which does not stop early: every scenario must detect the fault itself.
    const played = collect(open).tests.find((test) => test.name === name)
    await played?.run(SKIPPING).catch((error: unknown) => failed.set(name, error))
  }
  return failed
}

/** The context of a runner that can skip: a scenario with a reason in the fixture is not a failure. */
const SKIPPING = { skip: () => undefined }

/** Plays the suite in its order, as a runner does, and returns the outcome of each scenario. */
async function outcomes(open: () => broken.BrokenWorld): Promise<ReadonlyMap<string, string>> {
  const outcome = new Map<string, string>()
  for (const { name, run } of collect(open).tests) {
    outcome.set(name, 'passed')
    const skip = (reason: string) => void outcome.set(name, `skipped: ${reason}`)
    await run({ skip }).catch(() => outcome.set(name, 'failed'))
  }
  return outcome
}

const SUCCESS = 'success settles'
const EARLY = 'a retry arrives not before its time'
const TWICE = 'enacting twice has one effect'
const ORDER = 'order within a lane is kept, or its loss declared'
const UNREADABLE = 'unreadable headers count as a first attempt and raise a flag'
const LEGS = 'a delay beyond the longest is split, or rejected at start'
const DEAD_LETTER = 'a dead letter keeps bytes, headers, key, source and history'
const OVERSIZED = 'an oversized history is truncated and reported'
const QUARANTINE = 'quarantine removes a poison message from its lane and the lane continues'
const DRAIN = 'draining keeps dead letters that are not released'
const REPLAY = 'a replay goes back to its origin as the next cycle'
const INBOX = 'a replay already in the inbox settles as already handled'
const NAMES = 'a dead letter keeps its id on every drain'
const CONFIRMED = 'a handled replay is confirmed once, a plain message never'
const DROPPED = 'a dropped replay is confirmed as dropped'
const KEPT = 'a confirmation is kept until it is released'
const UNSTORED = 'a confirmation that is not stored keeps the replay'
const CONFIRMED_AGAIN =
  'a crash between confirmation and acknowledge confirms again, without a second effect'
const FAILED_AGAIN = 'a replay that fails again is not confirmed and keeps its replay id'
const EDITED = 'an edited replay keeps the key it replaces, through retries and dead letters'
const HANGS = 'close while a handler hangs returns the message'
const FINISHES = 'close while a handler runs lets it finish'
const CLOSE_PAUSED = 'close while paused leaves everything in the source'
const BLOCKED = 'close while a hand-off is blocked keeps the message'
const PAUSE = 'pause stops new deliveries and resume starts them'
const BREAKER = 'an open breaker pauses consumption without spending attempts'
const HISTORY = 'attempt history survives a process crash'
const HALFWAY =
  'a crash between publish and acknowledge duplicates under the same id, and loses nothing'
const AT_ONCE = 'a crash right after a hand-off began loses nothing'
const UNCONFIRMED = 'a copy that is not confirmed keeps the original'
const CRASH_LOOP = 'a crash loop among 100 innocent messages quarantines only the poison'
const RESTART = 'a broker restart loses nothing'
const CALLS = 'limit and pause before receive hold from the first delivery'
const CLOSE_TWICE = 'close resolves without open and when called again'
const PLANES = 'two control planes drain each dead letter once'
const LAG = 'lag counts the messages that consumers could handle now'
const LEASE = 'a handler that runs longer than the lease keeps its message'
const DECLARED = 'the declared capabilities are the exercised ones'

const { brokenConnection, brokenCopies, brokenSource, brokenTransport, without } = broken

/** A fault of the transport, and the scenarios that must detect it. */
const BREAKS: readonly (readonly [string, () => broken.BrokenWorld, readonly string[]])[] = [
  [
    'declares more capabilities than the suite was given',
    () =>
      brokenTransport(({ capabilities }) => ({
        capabilities: { ...capabilities, ordering: 'none' },
      })),
    [DECLARED],
  ],
  ['never acknowledges', () => brokenConnection(() => ({ ack: () => true })), [SUCCESS, FINISHES]],
  [
    'dead-letters messages that should be dropped',
    () => brokenTransport(broken.keepsDropped),
    [SUCCESS],
  ],
  [
    'delivers a retry early',
    () =>
      brokenConnection((connection) => ({
        publish: (queue, message, delayMs) =>
          connection.publish(queue, message, Math.min(delayMs, 1)),
      })),
    [EARLY],
  ],
  [
    'acknowledges before it publishes',
    () => brokenConnection(broken.acknowledgesFirst),
    [HALFWAY, CONFIRMED_AGAIN],
  ],
  [
    'acknowledges before it publishes and crashes',
    () =>
      brokenTransport((transport) => ({
        enact: async (delivery, decision) => {
          if (decision.kind !== 'deadLetter') return transport.enact(delivery, decision)
          await transport.enact(delivery, { kind: 'settle', reason: 'handled' })
          return transport.enact(delivery, decision)
        },
      })),
    [AT_ONCE],
  ],
  [
    'does not wait for the confirmation',
    () => brokenConnection(broken.ignoresConfirmation),
    [UNCONFIRMED, BLOCKED, UNSTORED],
  ],
  [
    'copies again on a repeated enactment',
    () => brokenTransport(broken.forgetsWhatItCopied),
    [TWICE],
  ],
  ["drops the producer's headers", () => brokenCopies(without('x-tenant')), [DEAD_LETTER, REPLAY]],
  ['re-encodes bytes', () => brokenCopies(broken.reEncoded), [DEAD_LETTER]],
  ['loses the key', () => brokenCopies(without('redrive-key')), [DEAD_LETTER, HISTORY, REPLAY]],
  [
    'loses the id',
    () => brokenCopies((message) => ({ ...without('redrive-id')(message), id: 'new' })),
    [HISTORY, HALFWAY, DEAD_LETTER],
  ],
  [
    'loses the content type',
    () => brokenCopies((message) => ({ ...message, contentType: undefined })),
    [DEAD_LETTER],
  ],
  [
    'loses the attempt count',
    () => brokenCopies(without('redrive-attempt')),
    [HISTORY, EARLY, DEAD_LETTER],
  ],
  ['loses the history', () => brokenCopies(without('redrive-history')), [HISTORY, DEAD_LETTER]],
  ['loses the rest of a split delay', () => brokenCopies(without('redrive-remaining')), [LEGS]],
  ['loses the reason', () => brokenCopies(without('redrive-reason')), [DEAD_LETTER, QUARANTINE]],
  [
    'truncates the history without reporting it',
    () => brokenTransport(broken.cutsSilently),
    [OVERSIZED],
  ],
  ['hides unreadable headers', () => brokenTransport(broken.hidesHeaderProblems), [UNREADABLE]],
  [
    'puts dead letters into quarantine',
    () => broken.misplaced(/\.dlq$/, (source) => quarantineQueue(source, 'unknown')),
    [DEAD_LETTER],
  ],
  [
    'puts quarantined messages into the dead-letter queue',
    () => broken.misplaced(/quarantine/, deadLetterQueue),
    [QUARANTINE, CRASH_LOOP],
  ],
  [
    'puts dead letters into an unknown queue',
    () => broken.misplaced(/\.dlq/, () => 'elsewhere'),
    [DEAD_LETTER, QUARANTINE, HALFWAY],
  ],
  ['returns to the end of the lane', () => brokenConnection(broken.returnsToTheEnd), [ORDER]],
  [
    'returns deliveries in flight when paused',
    () => brokenConnection(broken.returnsOnPause),
    [PAUSE],
  ],
  ['ignores pause', () => brokenConnection(broken.ignoresPause), [PAUSE]],
  ['never resumes', () => brokenTransport(() => ({ resume: () => undefined })), [PAUSE, BREAKER]],
  ['ignores a pause before receive', () => brokenTransport(broken.pausesOnlyLater), [CALLS]],
  ['ignores a limit before receive', () => brokenTransport(broken.limitsOnlyLater), [CALLS]],
  ['closes only once', () => brokenTransport(broken.closesOnce), [CLOSE_TWICE]],
  ['drains the same dead letters for every control plane', () => broken.drainsForAll(), [PLANES]],
  ['settles on close', () => brokenTransport(broken.settlesOnClose), [BLOCKED]],
  [
    'settles returned messages',
    () => brokenConnection((connection) => ({ release: (tag) => connection.ack(tag) })),
    [HANGS, ORDER],
  ],
  [
    'never finishes closing',
    () => brokenTransport(() => ({ close: () => new Promise(() => undefined) })),
    [FINISHES, CLOSE_PAUSED],
  ],
  [
    'does not count deliveries',
    () => broken.brokenHandOuts((handed) => ({ ...handed, deliveryCount: 1 })),
    [CRASH_LOOP],
  ],
  ['deletes dead letters on drain', () => brokenSource(broken.releasesAtOnce), [DRAIN, REPLAY]],
  [
    'never releases drained dead letters',
    () => brokenSource(broken.neverReleases),
    [DRAIN, REPLAY],
  ],
  [
    'drains more than the limit',
    () => brokenSource((source) => ({ drain: () => source.drain({ limit: 100 }) })),
    [DRAIN],
  ],
  [
    'replays in the same cycle',
    () => broken.replaysAs(({ cycle }) => ({ cycle: { ...cycle, number: 0 } })),
    [REPLAY],
  ],
  ['replays under a new id', () => broken.replaysAs(() => ({ id: 'new' })), [REPLAY]],
  ['replays under a new key', () => broken.replaysAs(() => ({ key: 'new' })), [REPLAY, INBOX]],
  [
    'loses the replay id',
    () =>
      brokenSource((source) => ({
        publish: (replay) => source.publish({ ...replay, replayId: 'other' }),
      })),
    [REPLAY],
  ],
  [
    'reports no depth',
    () => brokenSource(() => ({ depth: () => Promise.resolve(0) })),
    [DRAIN, DEAD_LETTER],
  ],
  ['changes the ids of dead letters', () => broken.drainsAs(broken.renamed), [NAMES]],
  [
    'reports a stable id as unnamed',
    () => broken.drainsAs((deadLetter) => ({ ...deadLetter, identity: 'generated' })),
    [NAMES],
  ],
  [
    'confirms no replay',
    () => broken.brokenConfirmations(() => undefined),
    [CONFIRMED, DROPPED, KEPT, UNSTORED, CONFIRMED_AGAIN, INBOX],
  ],
  [
    'confirms another replay',
    () => broken.brokenConfirmations((confirmation) => ({ ...confirmation, replayId: 'other' })),
    [CONFIRMED, DROPPED, KEPT, CONFIRMED_AGAIN, INBOX],
  ],
  [
    'confirms every replay as handled',
    () => broken.brokenConfirmations((confirmation) => ({ ...confirmation, outcome: 'handled' })),
    [DROPPED, INBOX],
  ],
  [
    'confirms with a time in the past',
    () => broken.brokenConfirmations((confirmation) => ({ ...confirmation, at: 0 })),
    [CONFIRMED],
  ],
  [
    'confirms plain messages too',
    () =>
      brokenTransport(
        broken.confirms(({ replayId }, { kind }) => replayId === undefined && kind === 'settle'),
      ),
    [CONFIRMED],
  ],
  [
    'confirms twice',
    () =>
      brokenTransport(
        broken.confirms(({ replayId }, { kind }) => replayId !== undefined && kind === 'settle'),
      ),
    [CONFIRMED],
  ],
  [
    'confirms a replay that failed again',
    () => brokenTransport(broken.confirms((_, { kind }) => kind === 'deadLetter')),
    [FAILED_AGAIN],
  ],
  [
    'loses the id of the failed replay',
    () => brokenCopies(without('redrive-replay-id')),
    [FAILED_AGAIN],
  ],
  [
    'deletes confirmations when it returns them',
    () => brokenSource(broken.forgetsConfirmationsAtOnce),
    [KEPT],
  ],
  [
    'never deletes confirmations',
    () => brokenSource(broken.neverForgetsConfirmations),
    [CONFIRMED, KEPT],
  ],
  [
    'returns more confirmations than the limit',
    () => brokenSource((source) => ({ confirmations: () => source.confirmations({ limit: 100 }) })),
    [KEPT],
  ],
  [
    'loses the key that an edit replaces',
    () => brokenCopies(without('redrive-replaces')),
    [EDITED],
  ],
  [
    'replays an edit with another replaced key',
    () => broken.replaysAs(() => ({ replaces: 'other' })),
    [EDITED],
  ],
  [
    'replays the content before the edit',
    () => broken.replaysAs(() => ({ bytes: new TextEncoder().encode('{"number":1}') })),
    [EDITED],
  ],
  ['loses dead letters on a restart', broken.losesOnRestart, [RESTART]],
  ['does not reconnect after a restart', broken.diesOnRestart, [RESTART]],
]

describe('exerciseTransport', () => {
  it('passes a transport that keeps all guarantees', async () => {
    expect(await failures(() => memoryFixture({ clock: new FakeClock() }))).toEqual(new Map())
  })

  it.each(BREAKS)('detects a transport that %s', async (_, open, expected) => {
    const failed = await failures(open)
    expect([...failed.keys()]).toEqual(expect.arrayContaining([...expected]))
  })

  it('has a broken transport for every scenario', () => {
    const names = collect(() => memoryFixture()).tests.map(({ name }) => name)
    const byLeases = Object.values(KILLS).flatMap(({ scenario, also = [] }) => [scenario, ...also])
    const caught = new Set([STRESS, ...byLeases, ...BREAKS.flatMap(([, , all]) => all)])
    expect(names.filter((name) => !caught.has(name))).toEqual([])
  })

  it('fails the stress run with the name of the failed scenario', async () => {
    const { tests } = collect(() => brokenCopies(broken.reEncoded))
    const stress = tests.find(({ name }) => name === STRESS)
    await expect(stress?.run()).rejects.toThrow(/10 of \d+ failed:\na dead letter keeps bytes/)
  })

  it('skips the rest, with the reason, when a basic scenario fails', async () => {
    const outcome = await outcomes(() => brokenConnection(() => ({ ack: () => true })))
    const [declared, success, ...rest] = [...outcome.values()]
    expect([declared, success]).toEqual(['passed', 'failed'])
    expect(rest.length).toBeGreaterThan(30)
    expect(new Set(rest)).toEqual(new Set([`skipped: '${SUCCESS}' failed`]))
  })

  it('plays the rest when a scenario that is not basic fails', async () => {
    const outcome = await outcomes(() => brokenCopies(without('redrive-reason')))
    expect(outcome.get(DEAD_LETTER)).toBe('failed')
    expect(outcome.get(RESTART)).toBe('passed')
  })

  it('fails scenarios that are not played when the runner cannot skip', async () => {
    const { tests } = collect(() => brokenConnection(() => ({ ack: () => true })))
    const [, success, next] = tests
    await expect(success?.run()).rejects.toThrow('too many')
    await expect(next?.run()).rejects.toThrow(`Not run: '${SUCCESS}' failed`)
  })

  it('plays the rest when a runner repeats a basic scenario and it passes', async () => {
    let worlds = 0
    const open = () => {
      worlds += 1
      return worlds === 1 ? brokenConnection(() => ({ ack: () => true })) : memoryFixture()
    }
    const [, success, next] = collect(open).tests
    await expect(success?.run()).rejects.toThrow('too many')
    await success?.run()
    await next?.run()
  })

  it('defines tests without a parameter, because some runners would wait for a callback', () => {
    expect(collect(() => memoryFixture()).tests.map(({ run }) => run.length)).not.toContain(1)
  })

  it('skips abilities that the fixture lacks, with the reason of the fixture', async () => {
    const outcome = await outcomes(() => memoryFixture({ clock: new FakeClock() }))
    expect(outcome.get(LAG)).toMatch(/^skipped: the memory broker counts/)
  })

  it('fails a scenario whose hook is missing without a reason', async () => {
    const failed = await failures(() => ({
      ...memoryFixture({ clock: new FakeClock() }),
      cannot: {},
    }))
    expect(String(failed.get(LAG))).toMatch(
      /lag\(\) of the source is missing\. .*world\.cannot\.lag/,
    )
  })

  it('is documented, scenario by scenario', async () => {
    const page = new URL('../../../docs/adding-a-transport.md', import.meta.url)
    const text = await readFile(page, 'utf8')
    const rows = text.split('\n').map((row) => row.split(' | ')[0]?.slice('| '.length))
    const names = collect(() => memoryFixture()).tests.map(({ name }) => name)
    expect(names.filter((name) => !rows.includes(name))).toEqual([])
  })

  it('reports skipped scenarios by name, with the reason', () => {
    const skip = [{ scenario: SUCCESS, reason: 'it cannot' }]
    const { tests, skipped } = collect(() => memoryFixture(), { skip })
    expect(skipped).toEqual(['success settles (skipped: it cannot)'])
    expect(tests.map(({ name }) => name)).not.toContain(SUCCESS)
  })

  it('skips scenarios that the capabilities rule out, with the reason', () => {
    const capabilities = { ...CAPABILITIES, deliveryCount: 'flag' } as const
    const { skipped } = collect(() => memoryFixture(), { capabilities })
    expect(skipped).toEqual([expect.stringMatching(/^a crash loop .*deliveryCount: 'flag'/)])
  })

  it('puts the reason into the name when the runner cannot skip', () => {
    const names: string[] = []
    exerciseTransport({
      runner: { describe: (_, define) => define(), it: (name) => void names.push(name) },
      name: 'x',
      capabilities: CAPABILITIES,
      open: () => memoryFixture(),
      skip: [{ scenario: RESTART, reason: 'shared broker' }],
    })
    expect(names).toContain(`SKIPPED: ${RESTART} (shared broker)`)
  })

  it('plays scenarios concurrently with isConcurrent, except basic scenarios and scenarios that run alone', () => {
    const alone: string[] = []
    const concurrent: string[] = []
    const options = {
      name: 'x',
      capabilities: CAPABILITIES,
      open: () => memoryFixture(),
      restartBroker: () => undefined,
      isConcurrent: true,
    }
    const describeNow = (_: string, define: () => void) => define()
    const add = (name: string) => void alone.push(name)
    const it = Object.assign(add, { concurrent: (name: string) => void concurrent.push(name) })
    exerciseTransport({ ...options, runner: { describe: describeNow, it } })
    expect(alone).toEqual([DECLARED, SUCCESS, LEASE, RESTART, STRESS])
    expect(concurrent.length).toBeGreaterThan(40)
    const runner = { describe: describeNow, it: () => undefined }
    expect(() => exerciseTransport({ ...options, runner })).toThrow(/no it\.concurrent/)
  })

  it('rejects a skipped scenario that does not exist', () => {
    const skip = [{ scenario: 'sucess settles', reason: 'typo' }]
    expect(() => collect(() => memoryFixture(), { skip })).toThrow(
      /scenario "sucess settles" does not exist/,
    )
  })

  it('rejects a skipped scenario without a reason', () => {
    const skip = [{ scenario: SUCCESS, reason: ' ' }]
    expect(() => collect(() => memoryFixture(), { skip })).toThrow(/needs a reason/)
  })

  it('rejects a suite without restartBroker and without a reason', () => {
    const define = () =>
      exerciseTransport({
        runner: { describe: (_, body) => body(), it },
        name: 'x',
        capabilities: CAPABILITIES,
        open: () => memoryFixture(),
      })
    expect(define).toThrow(/"restartBroker" is missing/)
  })
})
