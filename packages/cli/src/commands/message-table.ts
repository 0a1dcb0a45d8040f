import type { DeadLetter } from '@redrive/api'
import type { Io } from '../io.ts'
import { shortIds } from '../server/resolve-id.ts'
import type { Page } from '../text/page.ts'
import { bold } from '../text/painted.ts'
import { age, bytes, number } from '../text/format.ts'

export function messageTable(io: Io, page: Page, rows: readonly DeadLetter[]): void {
  const short = shortIds(rows.map(({ id }) => id))
  const now = io.now()
  page.table<DeadLetter>(
    [
      { title: 'MESSAGE', of: ({ id }) => bold(short(id)) },
      {
        title: 'STATUS',
        of: ({ status, quarantined }) => (quarantined ? `${status}, quarantined` : status),
      },
      { title: 'CLASS', of: (row) => row.class },
      { title: 'FAILED', of: ({ lastFailedAt }) => age(now - lastFailedAt), isNumber: true },
      { title: 'ATTEMPTS', of: ({ attempts }) => number(attempts), isNumber: true },
      { title: 'SIZE', of: ({ payloadBytes }) => bytes(payloadBytes), isNumber: true },
      { title: 'SOURCE', of: ({ source }) => source, least: 8 },
      { title: 'KEY', of: ({ key }) => key, least: 8 },
      { title: 'WHAT FAILED', of: ({ message }) => message, least: 20 },
    ],
    rows,
  )
}
