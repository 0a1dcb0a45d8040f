import { type FailureGroup, readMergedGroups } from '../read/groups.ts'
import { mergeGroups, type MergeRequest, type RegroupingDeps, unmergeGroup } from './merge.ts'

/** Corrects groups by hand, where the rules of signatures cannot decide. */
export interface Regrouping {
  /**
   * Merges groups of one source into the target: it then contains their dead letters and all later ones with their
   * signatures. No dead letter changes, so planned runs and selections stay valid. `unmerge` undoes it.
   */
  merge(target: string, request: MergeRequest): Promise<FailureGroup>
  /** Makes a merged group a separate group again, with all its dead letters. */
  unmerge(id: string): Promise<FailureGroup>
  /** Returns the groups that users merged into a group, directly or through another group; newest merge first. */
  merged(id: string): Promise<readonly FailureGroup[]>
}

export function createRegrouping(deps: RegroupingDeps): Regrouping {
  return {
    merge: (target, request) => mergeGroups(deps, target, request),
    unmerge: (id) => unmergeGroup(deps, id),
    merged: (id) => readMergedGroups(deps.reader, id),
  }
}
