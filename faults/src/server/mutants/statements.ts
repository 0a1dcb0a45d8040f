import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const CONDITIONS = 'packages/catalog/src/read/conditions.ts'
const GROUPS = 'packages/catalog/src/read/groups.ts'
const REQUESTS = 'packages/api/src/requests.ts'

/** SQL statements with text of a caller. */
export const STATEMENTS: readonly Mutant[] = [
  weakened('sql', 'the text of a filter is part of the statement', [
    GROUPS,
    "const pattern = values.add(containing(text), 'text')",
    "const pattern = `'%${text}%'`",
  ]),
  weakened(
    'sql',
    'the order is part of the statement: neither the contract nor the catalog checks it',
    [REQUESTS, 'order: z.enum(GROUP_ORDERS).optional()', 'order: z.string().optional()'],
    [GROUPS, "  check.oneOf('order', Object.keys(ORDERS))\n", ''],
    [
      GROUPS,
      "ORDERS[query.order ?? 'last_seen']",
      "(ORDERS[query.order ?? 'last_seen'] ?? query.order)",
    ],
  ),
  weakened('sql', 'the pointer into a body is part of the statement', [
    CONDITIONS,
    "const path = values.add(pointerSteps(pointer), 'text[]')",
    "const path = `'{${pointer.slice(1)}}'::text[]`",
  ]),
]
