import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Peer } from '../../components/peer.tsx'
import { hexLines } from '../../words/bytes.ts'
import type { JsonLine, Token } from '../../words/json-lines.ts'
import { countText } from '../../words/numbers.ts'
import { peerText, shorten } from '../../words/peer.ts'

/** 500 lines: a page with more is slow, and nobody reads them at once. */
const LINES_STEP = 500
/** 2,000 characters of a line. Raw shows the rest. */
const LINE_MAX = 2_000

export interface LinesProps {
  readonly lines: readonly ReactNode[]
  readonly label: string
}

/** Numbered lines. Long content is shown in steps. */
function Lines({ lines, label }: LinesProps) {
  const [most, setMost] = useState(LINES_STEP)
  const left = lines.length - most
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className="payload" aria-label={label} tabIndex={0}>
        <ol>
          {lines.slice(0, most).map((line, at) => (
            <li key={at}>{line}</li>
          ))}
        </ol>
      </section>
      {left > 0 ? (
        <div className="payload-more">
          <Button size="small" onClick={() => setMost(most + LINES_STEP)}>
            Show {countText(Math.min(left, LINES_STEP))} more lines
          </Button>
          <span className="quiet small">{countText(lines.length)} lines</span>
        </div>
      ) : null}
    </>
  )
}

export const JsonView = ({ lines }: { readonly lines: readonly JsonLine[] }) => (
  <Lines
    label="Body, formatted"
    lines={lines.map(({ depth, tokens }) => (
      <>
        {'  '.repeat(depth)}
        {tokens.map((token, at) => (
          <TokenView key={at} {...token} />
        ))}
      </>
    ))}
  />
)

const TITLES: Readonly<Partial<Record<Token['kind'], string>>> = {
  inexact:
    'This number is larger than the browser can show exactly. Reveal the body to see all digits.',
}

const TokenView = ({ kind, text }: Token) =>
  kind === 'masked' ? (
    <span className="masked">masked</span>
  ) : (
    <span data-token={kind} title={TITLES[kind]}>
      {kind === 'inexact' ? '≈ ' : ''}
      {peerText(shorten(text, LINE_MAX))}
    </span>
  )

export const RawView = ({ text }: { readonly text: string }) => (
  <Lines
    label="Body, raw"
    lines={text
      .split('\n')
      .flatMap((line) =>
        (line === '' ? [''] : (line.match(PIECES) ?? [])).map((piece) => (
          <Peer key={piece} text={piece} most={LINE_MAX} />
        )),
      )}
  />
)

/** Splits a long line, so that the browser does not lay out a megabyte at once. */
const PIECES = /[\s\S]{1,2000}/g

export const HexView = ({ bytes }: { readonly bytes: Uint8Array }) => (
  <Lines
    label="Body, bytes"
    lines={hexLines(bytes).map(({ at, hex, text }) => (
      <>
        <span className="faint">{at}</span> {hex} {text}
      </>
    ))}
  />
)
