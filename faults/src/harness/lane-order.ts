import { withKey } from '../evidence/check-keys.ts'
import { type Mix, plan, type PlannedMessage } from '../evidence/message.ts'
import { POLICY } from './consumer-options.ts'

/** The policy of consumers in lane order. Retries of a lane wait inside the consumer; here they only need to be quick. */
export const LANE_POLICY: typeof POLICY = {
  ...POLICY,
  retry: { attempts: 8, backoff: { kind: 'exponential', base: '20ms', cap: '100ms' } },
  adaptiveConcurrency: 'off',
  order: 'lane',
}

/** No `repeats`: the policy decides how often a message fails before quarantine, and the checker does not know that. */
const MIX: Mix = { flaky: 12, business: 4 }

/** Returns the messages of a run, each with one of the keys in turn. */
export const planWithKeys = (
  { run, messages }: { readonly run: string; readonly messages: number },
  keys: number,
): readonly (PlannedMessage & { readonly key: string })[] =>
  plan(run, messages, MIX).map((one, index) => withKey(one, index % keys))
