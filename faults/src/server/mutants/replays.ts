import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const GATES = 'packages/catalog/src/replay/plan/gates.ts'
const GUARD = 'packages/server/src/operations/authorize.ts'
const ORIGINS = 'packages/server/src/start/origins.ts'
const PLAN = 'packages/server/src/operations/plan.ts'
const RABBITMQ_HEADERS = 'packages/transports/rabbitmq/src/delivery.ts'
const REQUESTS = 'packages/api/src/requests.ts'

/** Replays to a target, or with headers, of the caller. */
export const REPLAYS: readonly Mutant[] = [
  weakened('crlf', 'replayed headers pass through lines of text', [
    RABBITMQ_HEADERS,
    'const { CC: _, BCC: __, ...headers } = delivery.headers\n  const types =',
    `const text = Object.entries(delivery.headers).map(([name, value]) => name + ': ' + String(value)).join('\\r\\n')
  const headers = Object.fromEntries(text.split('\\r\\n').map((line) => line.split(': ', 2)))
  const types =`,
  ]),
  weakened('crlf', 'a plan accepts unknown fields', [
    REQUESTS,
    '  z.strictObject({ edit: ',
    '  z.object({ edit: ',
  ]),
  weakened('elsewhere', 'a plan accepts unknown fields', [
    REQUESTS,
    '  .strictObject({\n    selection: z.union(',
    '  .object({\n    selection: z.union(',
  ]),
  weakened('elsewhere', 'selecting ids needs no permission to replay them', [
    PLAN,
    "    await guard.check({ ...audited, subject: id }, source, actions, 'deadLetter')\n",
    '    void [guard, audited, actions]\n',
  ]),
  weakened('elsewhere', 'the source of a run, group or dead letter is not checked', [
    GUARD,
    '    await this.check({ ...audited, source, subject: id }, source, actions, kind)\n',
    '    void actions\n',
  ]),
  weakened(
    'elsewhere',
    'a replay is published where the message says: neither the plan nor the publish checks it',
    [GATES, 'origins === undefined || origins.includes(origin)', 'true'],
    [
      ORIGINS,
      '      if (!allowed.has(origin)) throw originNotAllowed(name, origin)\n',
      '      void [allowed, origin]\n',
    ],
  ),
  weakened('elsewhere', 'a replay is also published to the queues in the CC header', [
    RABBITMQ_HEADERS,
    'const { CC: _, BCC: __, ...headers } = delivery.headers',
    'const { ...headers } = delivery.headers',
  ]),
]
