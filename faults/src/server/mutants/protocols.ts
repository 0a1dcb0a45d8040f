import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const APP = 'packages/server/src/http/app.ts'
const UNTRUSTED = 'packages/cli/src/mcp/untrusted.ts'

/** Ambiguous requests, agents, and producers that fill the catalog. */
export const PROTOCOLS: readonly Mutant[] = [
  weakened('groups', 'a source has no limit of groups', [
    'packages/catalog/src/ingest/groups.ts',
    'export const GROUPS_MAX = 10_000',
    'export const GROUPS_MAX = 10_000_000',
  ]),
  weakened('smuggling', 'ambiguous requests are parsed', [
    APP,
    'maxHeaderSize: HEADER_BYTES,',
    'maxHeaderSize: HEADER_BYTES, insecureHTTPParser: true,',
  ]),
  weakened('mcp', 'every result for an agent has the same mark', [
    UNTRUSTED,
    'const mark = randomUUID()',
    "const mark = randomUUID().slice(0, 0) + 'data'",
  ]),
  weakened('mcp', 'results for an agent contain control characters', [
    UNTRUSTED,
    'const text = safeJson(bounded(value), 1)',
    'const text = safeJson(bounded(value), 1).replace(/\\\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))',
  ]),
]
