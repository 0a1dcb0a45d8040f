import { createHash } from 'node:crypto'
import type { Output, Operation } from '@redrive/api'

/** Returns the ETag of a group. It covers what users change, not the counts, which change all the time. */
export const groupTag = ({
  id,
  state,
  mutedUntil,
  owner,
  regressed,
}: Pick<Output<'getGroup'>, 'id' | 'state' | 'mutedUntil' | 'owner' | 'regressed'>): string =>
  tagOf([id, state, mutedUntil ?? null, owner ?? null, regressed])

export const deadLetterTag = ({
  id,
  version,
}: Pick<Output<'getDeadLetter'>, 'id' | 'version'>): string => tagOf([id, version])

const runTag = ({ id, state, hash, counts }: Output<'getReplay'>) =>
  tagOf([id, state, hash, counts])

const tagOf = (parts: readonly unknown[]) =>
  `"${createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, TAG_LENGTH)}"`

/** 22 characters are 132 bits, enough to avoid collisions. */
const TAG_LENGTH = 22

type Tags = { readonly [K in Operation]?: (answer: Output<K>) => string }

const TAGS: Tags = {
  getGroup: groupTag,
  changeGroup: groupTag,
  mergeGroups: groupTag,
  unmergeGroup: groupTag,
  getDeadLetter: deadLetterTag,
  planReplay: runTag,
  getReplay: runTag,
  approveReplay: runTag,
  pauseReplay: runTag,
  resumeReplay: runTag,
  cancelReplay: runTag,
}

/** Returns the ETag of a response; undefined if the response is not a single object. */
export function etagOf(operation: Operation, answer: unknown): string | undefined {
  const tag = TAGS[operation] as ((answer: unknown) => string) | undefined
  return tag?.(answer)
}
