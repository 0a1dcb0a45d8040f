/**
 * A mistake that real systems have had, as one change to Redrive's source. The simulator must find
 * every one; a mutant that survives shows a gap in the simulator.
 */
export interface Mutant {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

const ENACT = 'packages/transports/memory/src/enact.ts'
const HEADERS = 'packages/transports/memory/src/delivery.ts'
const RECEIVE = 'packages/transports/memory/src/transport.ts'
const QUEUE = 'packages/transports/memory/src/queue.ts'
const LOOP = 'packages/runtime/src/loop.ts'
const RUN_ALONE = 'packages/runtime/src/run-alone.ts'
const FORGET_LOST = 'packages/runtime/src/forget-lost.ts'
const INLINE = 'packages/runtime/src/inline.ts'
const WORK = 'packages/runtime/src/pending-delivery.ts'
const HAND_OFF = 'packages/runtime/src/handoff.ts'
const CALL = 'packages/runtime/src/invoke.ts'
const DECIDE = 'packages/core/src/decide.ts'
const BREAKER = 'packages/core/src/breaker.ts'
const EVIDENCE = 'packages/core/src/evidence.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledge before publish',
    file: ENACT,
    find: 'await connection.publish(queue, copy.message, delayMs)',
    replace:
      'await connection.ack(delivery.tag); await connection.publish(queue, copy.message, delayMs)',
  },
  {
    name: 'ignore the confirmation',
    file: ENACT,
    find: 'await connection.publish(queue, copy.message, delayMs)',
    replace:
      'Promise.resolve(connection.publish(queue, copy.message, delayMs)).catch(() => undefined)',
  },
  {
    name: 'drop the attempt count',
    file: ENACT,
    find: 'copyOf(delivery, cycle,',
    replace: 'copyOf(delivery, delivery.cycle,',
  },
  {
    name: 'retry early',
    file: ENACT,
    find: 'delayMs: Math.max(0, decision.delayMs)',
    replace: 'delayMs: Math.max(0, decision.delayMs / 2)',
  },
  {
    name: 'dead-letter to a missing queue',
    file: ENACT,
    find: 'queue: deadLetterQueue(source)',
    replace: 'queue: `${deadLetterQueue(source)}.typo`',
  },
  {
    name: "drop the producer's headers",
    file: HEADERS,
    find: '{ ...delivery.headers, ...encoded.headers }',
    replace: '{ ...encoded.headers }',
  },
  {
    name: 'acknowledge in-flight messages on close',
    file: RECEIVE,
    find: 'async (tag) => connection.release(tag)',
    replace: 'async (tag) => connection.ack(tag)',
  },
  {
    name: 'two owners after a return',
    file: QUEUE,
    find: `    this.#outstanding.delete(tag)
    this.#freeLane(one.stored.message.lane)
    this.#makeReady`,
    replace: '    this.#makeReady',
  },
  {
    name: 'ignore that a consumer died',
    file: QUEUE,
    find: 'one.stored.unsettled + 1',
    replace: 'one.stored.unsettled',
  },
  {
    name: 'deliver a lane twice',
    file: QUEUE,
    find: 'this.#busyLanes.add(stored.message.lane)',
    replace: 'this.#busyLanes.clear()',
  },
  {
    name: 'inline retry early',
    file: INLINE,
    find: 'this.#clock.after(delayMs, () => {',
    replace: 'this.#clock.after(delayMs / 2, () => {',
  },
  {
    name: 'return a message without its attempts',
    file: WORK,
    find: "if (!hasOwnFailures(pending) || order === 'lane') return pause",
    replace: 'if (pending !== undefined) return pause',
  },
  {
    name: 'settle after the timeout has already decided',
    file: LOOP,
    find: 'if (!wasHung && !attempt.isLost) return true',
    replace: 'if (!attempt.isLost) return true',
  },
  {
    name: 'run a message while an earlier run is alive',
    file: LOOP,
    find: 'this.unended.stateOf(delivery.id)',
    replace: 'this.unended.stateOf(`other ${delivery.id}`)',
  },
  {
    name: 'retry a delivery that the broker has taken back',
    file: FORGET_LOST,
    find: 'const retries = inline.takeThose(lost)',
    replace: 'const retries = inline.takeThose(new Set())',
  },
  {
    name: 'run a suspect together with others',
    file: RUN_ALONE,
    find: '.then(() => handOff.whenIdle())',
    replace: '',
  },
  {
    name: 'settle failures',
    file: LOOP,
    find: '    this.enacting.carryOut(pending.delivery, decision)',
    replace: '    this.enacting.carryOut(pending.delivery, SETTLE)',
  },
  {
    name: 'treat an unknown outcome as done',
    file: HAND_OFF,
    find: 'if (isUnfinished(enactment)) return void',
    replace: 'if (enactment === undefined) return void',
  },
  {
    name: 'use another key for every attempt',
    file: CALL,
    find: 'const { key, replaces } = delivery',
    replace: 'const { replaces } = delivery; const key = `${delivery.key}#${attempt.attempt}`',
  },
  {
    name: 'count attempts while the dependency is unhealthy',
    file: DECIDE,
    find: 'cycle: countRun(input.cycle, run, cause),',
    replace: "cycle: countRun(input.cycle, run, 'message'),",
  },
  {
    name: 'count failures without proof',
    file: EVIDENCE,
    find: "return isLimited && !othersPassed ? 'unproven' : 'message'",
    replace: "return 'message'",
  },
  {
    name: 'never close the breaker',
    file: BREAKER,
    find: 'return now >= state.until ?',
    replace: 'return now < state.since ?',
  },
  {
    name: 'let one bad message keep the breaker open',
    file: BREAKER,
    find: "if (isKnown && (input.kind === 'unexplained' || state.successes > 0)) return state",
    replace: '',
  },
  {
    name: 'blame the message for an outage',
    file: EVIDENCE,
    find: "if (after.breaker.phase !== 'closed') return causeWhileOpen(input)",
    replace: "if (after.breaker.phase !== 'closed') return 'message'",
  },
]
