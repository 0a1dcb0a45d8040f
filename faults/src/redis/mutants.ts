import type { Edit, Mutant } from '../harness/mutant.ts'

const ENACT = 'packages/transports/redis/src/enact.ts'
const SCRIPTS = 'packages/transports/redis/src/scripts.ts'
const SERVER = 'packages/transports/redis/src/server.ts'

const EARLY: Edit = [
  ENACT,
  '  return resultOf(await deps.member.handOff(entry, target), done, deps)',
  `  await deps.end({ what: 'done', entry })
  await deps.member.handOff(entry, target)
  return done`,
]

export const MUTANTS: readonly Mutant[] = [
  ['acknowledge before the copy is stored', 'kill-at-boundaries', 'lost', EARLY],
  [
    'leave the original after the copy is stored',
    'kill-at-boundaries',
    'duplicates over the bound',
    [SCRIPTS, "acknowledge(stream, group, id, ARGV[5] == '1')\nreturn 1", 'return 1'],
  ],
  [
    'do not check the owner',
    'stopped',
    'scenario',
    [SCRIPTS, '  if not entry then return 2 end', '  if true then return 1 end'],
  ],
  [
    'compute the time of a retry with the clock of the consumer',
    'client-clock',
    'scenario',
    [SCRIPTS, "redis.call('ZADD', target, clock() + ms,", "redis.call('ZADD', target, ms,"],
    [
      SERVER,
      'kind, String(Math.ceil(ms)),',
      "kind, String(Math.ceil(ms) + (kind === 'retry' ? Date.now() : 0)),",
    ],
  ],
  [
    'do not copy a trimmed message that is returned',
    'trimmed-stream',
    'lost',
    [ENACT, "      if (result !== 'trimmed') return", '      if (result !== undefined) return'],
  ],
]
