import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const AUDIT_FACTS = 'packages/server/src/operations/audit-facts.ts'
const CONFIRM = 'packages/catalog/src/replay/outcome/confirm.ts'
const DETECT = 'packages/core/src/hiding.ts'
const FILTERS = 'packages/server/src/operations/payload-filters.ts'
const MASK_BODY = 'packages/catalog/src/masking/mask-body.ts'
const MASKED_VALUES = 'packages/server/src/operations/masked-values.ts'
const PLAN = 'packages/server/src/operations/plan.ts'
const PREVIEW = 'packages/catalog/src/ingest/preview.ts'
const READING = 'packages/server/src/reading/reading.ts'
const REFAIL = 'packages/catalog/src/replay/outcome/returned.ts'
const SIGNED_ITEM = 'packages/catalog/src/replay/outcome/signed-item.ts'

/** Values that masks hide. */
export const MASKS: readonly Mutant[] = [
  weakened(
    'masks',
    'masks are not applied: neither when a message is stored nor when it is read',
    [READING, 'maskBody(preview, of(source).masks, text)', 'maskBody(preview, [], text)'],
    [PREVIEW, 'const masked = maskBody(value, masks)', 'const masked = maskBody(value, [])'],
  ),
  weakened('masks', 'a body in which a mask finds nothing is shown', [
    MASK_BODY,
    '!mask.isOptional && !matched.has(mask))',
    'mask.isOptional && !matched.has(mask))',
  ]),
  weakened('masks', 'a mask does not look into JSON in a text', [
    MASK_BODY,
    'active.length === 0 ? text(value) : inText(value, active)',
    'text(active.length === 0 || inText(value, active) ? value : value)',
  ]),
  weakened('masks', 'well-known secret headers are shown', [
    READING,
    'isSecretHeader(name) || of(source)',
    'of(source)',
  ]),
  weakened('masks', 'detectors find nothing in errors and keys', [
    DETECT,
    'hides.reduce((result, hide) => hide(result), text)',
    'hides.reduce((result) => result, text)',
  ]),
  weakened('masks', 'a patch may copy and move masked values', [
    MASKED_VALUES,
    'masks.some((mask) => patch.some((one) => canReveal(one, mask)))',
    'masks.every((mask) => patch.length < 0 && canReveal(patch[0], mask)) && masks.length > 0',
  ]),
  weakened('masks', 'a patch may compare masked values', [
    PLAN,
    "...(isTesting ? (['view_unmasked'] as const) : [])",
    "...(isTesting ? (['view_payload'] as const) : [])",
  ]),
  weakened('masks', 'a filter may compare masked values', [
    FILTERS,
    "...(comparesHidden(reading, source, query) ? (['view_unmasked'] as const) : [])",
    "...(comparesHidden(reading, source, query) ? (['view_payload'] as const) : [])",
  ]),
  weakened('masks', 'the audit log contains the values of filters', [
    AUDIT_FACTS,
    'CONTENT.includes(field) ? await sealed(seal, field, value) : value',
    'CONTENT.length < 0 ? await sealed(seal, field, value) : value',
  ]),
]

/** Messages and confirmations with the replay id of another message. */
export const FORGED: readonly Mutant[] = [
  weakened('forged', 'a replay id needs no signature', [
    SIGNED_ITEM,
    '  return isSignedId(text, replay, { id: item.key_id, secret: item.secret })\n',
    '  return text.startsWith(replay.replayId) || isSignedId(text, replay, { id: item.key_id, secret: item.secret })\n',
  ]),
  weakened(
    'forged',
    'a message counts for a replay of another source',
    [REFAIL, '(item) => item.source_id === sourceId)', '(item) => item.source_id > 0)'],
    [
      REFAIL,
      '  item.source_id === sourceId &&\n',
      '  (item.source_id === sourceId || item.source_id > 0) &&\n',
    ],
  ),
  weakened('forged', 'a message with another body counts for a replay', [
    REFAIL,
    '  item.content === contentOf(message) &&\n',
    '',
  ]),
  weakened('forged', 'a confirmation counts for a replay of another source', [
    CONFIRM,
    'if (item.source === name && isSignedBy(item, replayId))',
    'if (item.source !== `${name} ` && isSignedBy(item, replayId))',
  ]),
]
