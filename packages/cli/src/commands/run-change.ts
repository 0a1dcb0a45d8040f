import { type Output, ApiError, type Client, type Run } from '@redrive/api'
import type { Io } from '../io.ts'
import type { Page } from '../text/page.ts'
import { yellow } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'

type RunChange = Output<'getReplayChange'>

/** Prints the changes of a run for the approver, because the hash does not show them. */
export async function showChange(io: Io, client: Client, page: Page, run: Run): Promise<void> {
  if (!run.isChanged) return
  const change = await changeOf(io, client, run)
  if (change === undefined) {
    page.line`${yellow('You may not see the changes of this run.')} This requires permission "view_payload", and "approve" or "edit", on source "${run.source}".`
  } else {
    SENTENCES[change.kind](page, change)
  }
}

/** Returns the changes, or undefined if the caller may not see them. */
async function changeOf(io: Io, client: Client, { id }: Run): Promise<RunChange | undefined> {
  try {
    return await client.call('getReplayChange', { params: { id } }, { signal: io.signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'forbidden') return undefined
    throw error
  }
}

const SENTENCES: Readonly<Record<RunChange['kind'], (page: Page, change: RunChange) => void>> = {
  none: () => undefined,
  force: (page) =>
    page.line`Each message gets a new key: a consumer that handled it before handles it again.`,
  patch(page, { patch, isHidden }) {
    page.line`Each body is patched${isHidden ? ' (tested values require permission "view_unmasked")' : ''}:`
    page.block(safeJson(patch, 2))
  },
  edit(page, { text, bytes, isHidden }) {
    if (isHidden)
      page.line`The body is replaced. To see the new body, permission "view_unmasked" is required.`
    else page.line`The body is replaced by ${text === undefined ? 'these bytes (base64)' : 'this'}:`
    if (!isHidden) page.block(text ?? bytes ?? '')
  },
}
