import { createHash } from 'node:crypto'
import type { Answer, Operation } from '@redrive/api'

/** What a group's ETag stands for: what people change. Its counts grow all the time and are not part of it. */
export const groupTag = ({
  id,
  state,
  mutedUntil,
  owner,
  regressed,
}: Pick<Answer<'getGroup'>, 'id' | 'state' | 'mutedUntil' | 'owner' | 'regressed'>): string =>
  tagOf([id, state, mutedUntil ?? null, owner ?? null, regressed])

export const deadLetterTag = ({
  id,
  version,
}: Pick<Answer<'getDeadLetter'>, 'id' | 'version'>): string => tagOf([id, version])

const runTag = ({ id, state, hash, counts }: Answer<'getReplay'>) =>
  tagOf([id, state, hash, counts])

const tagOf = (parts: readonly unknown[]) =>
  `"${createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, TAG_LENGTH)}"`

/** 22 characters: 132 bits, so that no two states of a thing ever have the same. */
const TAG_LENGTH = 22

type Tags = { readonly [K in Operation]?: (answer: Answer<K>) => string }

const TAGS: Tags = {
  getGroup: groupTag,
  changeGroup: groupTag,
  getDeadLetter: deadLetterTag,
  planReplay: runTag,
  getReplay: runTag,
  approveReplay: runTag,
  pauseReplay: runTag,
  resumeReplay: runTag,
  cancelReplay: runTag,
}

/** The ETag of an answer; undefined for what is not one object. */
export function etagOf(operation: Operation, answer: unknown): string | undefined {
  const tag = TAGS[operation] as ((answer: unknown) => string) | undefined
  return tag?.(answer)
}
