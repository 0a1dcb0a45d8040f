import type { Output } from '@redrive/api'

type SourceMasks = Output<'listMasks'>['sources'][number]
type Detector = Output<'listMasks'>['detectors'][number]

export interface MaskRow {
  readonly key: string
  readonly source: string
  readonly what: string
  readonly isHeader: boolean
  /** Whether a body without the value is shown. */
  readonly isOptional: boolean
}

/** Returns a row for each masked path and header, by source. */
export const maskRows = (sources: readonly SourceMasks[]): readonly MaskRow[] =>
  sources
    .toSorted((one, other) => one.source.localeCompare(other.source))
    .flatMap(({ source, paths, headers }) => [
      ...paths.map(({ pointer, isOptional }) => ({
        ...{ key: `${source} ${pointer}`, source, what: pointer, isHeader: false, isOptional },
      })),
      ...headers.map((name) => ({
        ...{ key: `${source} header ${name}`, source, what: name, isHeader: true },
        isOptional: false,
      })),
    ])

// biome-ignore format: one row per detector
export const DETECTOR_NAMES: Readonly<Record<Detector, { readonly label: string; readonly note: string; readonly shown: string }>> = {
  privateKey: { label: 'Private key', note: 'PEM blocks', shown: '[hidden: private key]' },
  token: { label: 'Credentials', note: 'JWT, bearer tokens, keys with a known prefix, passwords', shown: '[hidden: token]' },
  card: { label: 'Card number', note: '13–19 digits with a valid check digit', shown: '[hidden: card number]' },
  iban: { label: 'IBAN', note: 'country, length and checksum', shown: '[hidden: IBAN]' },
  email: { label: 'E-mail address', note: 'in error messages, too', shown: '[hidden: e-mail]' },
}
