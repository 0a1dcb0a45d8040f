import { type FailureClass, FAILURE_CLASSES, formatDuration, type Policy } from '@redrive/core'
import { longestDelayMs } from '@redrive/core/internal'

/** The capabilities of a transport. They are declared, so that a policy that needs more is rejected at start-up. */
export interface Capabilities {
  /** How a message is delayed: by the broker itself, by queues of Redrive, or not at all. */
  readonly delay:
    | {
        readonly kind: 'native' | 'emulated'
        readonly longestMs: number
        /** The only delays available, ascending; others are rounded up. Absent: any delay up to the longest. */
        readonly stepsMs?: readonly number[]
      }
    | { readonly kind: 'none' }
  /** The scope in which messages arrive in the order they were sent, also after a return. */
  readonly ordering: 'none' | 'lane'
  /** True when copy and release happen in one step: a crash leaves no duplicate. */
  readonly atomicHandOff: boolean
  /** How exactly the broker reports earlier deliveries of a message without a settlement. */
  readonly deliveryCount: 'exact' | 'flag' | 'none'
  /** Bytes that Redrive's headers may use. */
  readonly headerBudgetBytes: number
  /**
   * Whether the broker discards a replay that is published again under the same id. Absent means
   * `'delivered'`: the consumer gets both copies, and only its inbox makes one effect of them.
   */
  readonly duplicateReplays?: 'discarded' | 'delivered'
}

/** Returns why this policy cannot run on this transport, one sentence each with the fix. Empty when it can. */
export function missingCapabilities(policy: Policy, capabilities: Capabilities): readonly string[] {
  const problems: string[] = []
  if (policy.order === 'lane' && capabilities.ordering === 'none') {
    problems.push(
      "order: 'lane' needs a transport that keeps order, and this one does not. Use order: 'none', or also set order: 'lane' in the options of the transport, if it has this option.",
    )
  }
  if (capabilities.delay.kind === 'none' && policy.order === 'none') {
    problems.push(...delayProblems(policy))
  }
  return problems
}

function delayProblems(policy: Policy): readonly string[] {
  return FAILURE_CLASSES.filter((name) => isTooLong(policy, name)).map((name) => {
    const longest = formatDuration(longestDelayMs(policy.retry.classes[name].backoff))
    return `retry.classes.${name}: a backoff of up to ${longest} needs delayed delivery, and this transport has none. Keep backoff below retry.maxInlineDelay (${formatDuration(policy.retry.maxInlineDelayMs)}), or choose a transport that can delay.`
  })
}

function isTooLong({ retry }: Policy, name: FailureClass): boolean {
  const { action, attempts, backoff } = retry.classes[name]
  return action === 'retry' && attempts > 1 && longestDelayMs(backoff) >= retry.maxInlineDelayMs
}
