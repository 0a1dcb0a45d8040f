import type { Mutant } from '../hunt.ts'

const FAN_OUT = 'packages/runtime/src/emit/fan-out.ts'
const HEAL = 'packages/runtime/src/emit/heal.ts'
const KEEP = 'packages/runtime/src/emit/keep.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'say stored before it is',
    edits: [
      {
        file: KEEP,
        find: 'await this.#store.save(deadLetter)',
        replace: 'void this.#store.save(deadLetter)',
      },
    ],
    scenario: 'kills',
    breaks: 'lost',
  },
  {
    name: 'replay without regard to the budget',
    edits: [{ file: HEAL, find: '    await this.#turn(outlet)\n', replace: '' }],
    scenario: 'outage',
    breaks: 'storm',
  },
  {
    name: 'drop what is over the rate limit, whatever it is',
    edits: [
      {
        file: FAN_OUT,
        find: 'mayDrop ? isAlwaysKept(filter, candidate)',
        replace: 'mayDrop ? false',
      },
    ],
    scenario: 'rate-limit',
    breaks: 'lost',
  },
  {
    name: 'wait for the store in a job',
    edits: [
      {
        file: FAN_OUT,
        find: 'if (!scope.isFailing) {',
        replace: 'if (this === undefined) {',
      },
    ],
    scenario: 'jobs',
    breaks: 'too slow',
  },
]
