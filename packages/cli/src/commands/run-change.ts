import { type Answer, ApiError, type Client, type Run } from '@redrive/api'
import type { Io } from '../io.ts'
import type { Page } from '../text/page.ts'
import { yellow } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'

type RunChange = Answer<'getReplayChange'>

/** What goes out instead of what came in, for who decides about it: a hash alone says nothing. */
export async function showChange(io: Io, client: Client, page: Page, run: Run): Promise<void> {
  if (!run.isChanged) return
  const change = await changeOf(io, client, run)
  if (change === undefined) {
    page.line`${yellow('You may not see what it changes.')} That needs the actions payload and approve, or edit, for ${run.source}.`
  } else {
    SENTENCES[change.kind](page, change)
  }
}

/** Undefined: it is not for who asks. */
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
    page.line`Each goes out under a new key: a consumer that handled it before handles it again.`,
  patch(page, { patch, isHidden }) {
    page.line`Each body is patched${isHidden ? '; what is tested is only for who may unmask' : ''}:`
    page.block(safeJson(patch, 2))
  },
  edit(page, { text, bytes, isHidden }) {
    if (isHidden) page.line`The body is replaced. The new one is only for who may unmask.`
    else page.line`The body is replaced by ${text === undefined ? 'these bytes (base64)' : 'this'}:`
    if (!isHidden) page.block(text ?? bytes ?? '')
  },
}
