import type { Edit, Mutant } from '../../harness/mutant.ts'

/**
 * A build without one defence, or without all defences against one attack. The attack must succeed
 * there.
 */
export const weakened = (scenario: string, name: string, ...edits: readonly Edit[]): Mutant => [
  name,
  `attack-${scenario}`,
  'attack succeeded',
  ...edits,
]
