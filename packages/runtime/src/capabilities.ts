import {
  type FailureClass,
  FAILURE_CLASSES,
  formatDuration,
  longestDelayMs,
  type Policy,
} from '@redrive/core'

/** What a transport can do. Declared, so that a policy that needs more is refused at start-up. */
export interface Capabilities {
  /** Holding a message until it is due: by the broker itself, by queues of ours, or not at all. */
  readonly delay:
    | {
        readonly kind: 'native' | 'emulated'
        readonly longestMs: number
        /** The only delays there are, ascending; others are rounded up. Absent: any up to the longest. */
        readonly stepsMs?: readonly number[]
      }
    | { readonly kind: 'none' }
  /** The scope in which messages arrive in the order they were sent, also after a return. */
  readonly ordering: 'none' | 'lane'
  /** Copy and release happen in one step: a crash leaves no duplicate. */
  readonly atomicHandOff: boolean
  /** How well the broker tells that a delivery was handed out before without a word from us. */
  readonly deliveryCount: 'exact' | 'flag' | 'none'
  /** Bytes our own headers may take. */
  readonly headerBudgetBytes: number
  /**
   * Whether the broker discards a replay that is published again under the same id. Absent means
   * `'delivered'`: the consumer gets both copies, and only its inbox makes one effect of them.
   */
  readonly duplicateReplays?: 'discarded' | 'delivered'
}

/** Why this policy cannot run on this transport, one sentence each that says what to do. Empty when it can. */
export function missingCapabilities(policy: Policy, capabilities: Capabilities): readonly string[] {
  const problems: string[] = []
  if (policy.order === 'lane' && capabilities.ordering === 'none') {
    problems.push(
      "order: 'lane' needs a transport that keeps order, and this one does not. Use order: 'none', or a transport or mode with lanes.",
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
    return `retry.classes.${name}: a backoff of up to ${longest} needs delayed delivery, and this transport has none. Keep backoff below retry.inlineBelow (${formatDuration(policy.retry.inlineBelowMs)}), or choose a transport that can delay.`
  })
}

function isTooLong({ retry }: Policy, name: FailureClass): boolean {
  const { action, attempts, backoff } = retry.classes[name]
  return action === 'retry' && attempts > 1 && longestDelayMs(backoff) >= retry.inlineBelowMs
}
