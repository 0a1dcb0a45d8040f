import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import '../components/table.css'

export interface WindowRowsOptions {
  readonly count: number
  /** Height of a row, px. */
  readonly heightOf: (index: number) => number
  /** Index of the row with the keyboard focus; -1: none. */
  readonly focusedAt: number
}

export interface WindowRows {
  /** The element that contains the table. */
  readonly frame: RefObject<HTMLDivElement | null>
  /** Indexes of the rows to render. */
  readonly visible: readonly number[]
  /** Height of the rows before and after them, px. */
  readonly before: number
  readonly after: number
}

/** Returns the rows of a long table that are near the window. Only they exist in the page. */
export function useWindowRows({ count, heightOf, focusedAt }: WindowRowsOptions): WindowRows {
  const frame = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => setTop(frame.current?.offsetTop ?? 0), [])
  const rows = useWindowVirtualizer({
    count,
    estimateSize: heightOf,
    overscan: 8,
    scrollMargin: top,
  })
  useEffect(() => {
    if (focusedAt >= 0) rows.scrollToIndex(focusedAt, { align: 'auto' })
  }, [focusedAt, rows])
  const visible = rows.getVirtualItems()
  return {
    frame,
    visible: visible.map(({ index }) => index),
    before: (visible[0]?.start ?? top) - top,
    after: rows.getTotalSize() - ((visible.at(-1)?.end ?? top) - top),
  }
}

/** Keeps the height of rows that do not exist. */
export const Spacer = ({ height }: { readonly height: number }) =>
  height <= 0 ? null : (
    <tr aria-hidden="true" className="table-spacer">
      <td style={{ height }} />
    </tr>
  )
