import type { Mutant } from '../harness/mutant.ts'

const FAN_OUT = 'packages/runtime/src/emit/fan-out.ts'
const BEFORE_SEND = 'packages/runtime/src/emit/before-send.ts'
const FLUSH = 'packages/runtime/src/emit/flush-on-exit.ts'
const HEAL = 'packages/runtime/src/emit/sink-recovery.ts'
const KEEP = 'packages/runtime/src/emit/dead-letter-writer.ts'

export const MUTANTS: readonly Mutant[] = [
  [
    'report "stored" before the event is stored',
    'kills',
    'lost',
    [KEEP, 'await this.#store.save(deadLetter)', 'void this.#store.save(deadLetter)'],
  ],
  [
    'lose a burst that is larger than the concurrent saves',
    'bursts',
    'lost',
    [KEEP, 'const MAX_WAITING_BYTES = 256 * 2 ** 20', 'const MAX_WAITING_BYTES = 2 ** 20'],
  ],
  [
    'resolve emit before the event is stored',
    'before-send',
    'lost',
    [
      BEFORE_SEND,
      '    writer.write(deadLetter, (failed) => {\n',
      '    onEnd(STORED)\n    writer.write(deadLetter, (failed) => {\n',
    ],
  ],
  [
    'end on SIGTERM before the emitter is closed',
    'signals',
    'lost',
    [FLUSH, 'void close().then(() => {', 'void Promise.resolve().then(() => {'],
  ],
  [
    'replay without the retry budget',
    'outage',
    'storm',
    [HEAL, '    await this.#waitForTurn(sinkQueue)\n', ''],
  ],
  [
    'drop every event over the rate limit',
    'rate-limit',
    'lost',
    [FAN_OUT, 'mayDrop ? isAlwaysKept(filter, candidate)', 'mayDrop ? false'],
  ],
  [
    'wait for the store in a job',
    'jobs',
    'too slow',
    [FAN_OUT, 'if (!scope.isFailing) {', 'if (this === undefined) {'],
  ],
]
