/** The words in which the dashboards are described. dev/dashboards/grafana.ts writes them as Grafana reads them. */
import type { Variable } from './query.ts'

export interface Query {
  readonly expr: string
  /** Name of a line; labels as `{{source}}`. */
  readonly legend: string
}

/** A chart over time, or the newest value as a number. */
export interface Panel {
  readonly kind: 'chart' | 'number'
  readonly title: string
  /** Describes the panel, and which value is good. */
  readonly meaning: string
  readonly unit: Unit
  readonly queries: readonly Query[]
  /** Names of the values of a state. */
  readonly states?: readonly string[]
  /** The number is yellow above 0, and red from here on. */
  readonly redFrom?: number
}

export type Unit = 'count' | 'perSecond' | 'seconds' | 'share' | 'bytes'

export interface Section {
  readonly title: string
  readonly panels: readonly Panel[]
}

export interface Dashboard {
  /** File name and address in Grafana. */
  readonly name: string
  readonly title: string
  readonly meaning: string
  readonly variables: readonly Variable[]
  readonly sections: readonly Section[]
}

type Rest = Omit<Panel, 'kind' | 'title' | 'meaning' | 'unit' | 'queries'>

/** Describes a chart; `lines` has the name of each line and its query. */
export const chart = (
  title: string,
  unit: Unit,
  meaning: string,
  lines: Readonly<Record<string, string>>,
  rest: Rest = {},
): Panel => ({ kind: 'chart', title, unit, meaning, queries: queriesOf(lines), ...rest })

/** Describes a number. */
export const number = (
  title: string,
  unit: Unit,
  meaning: string,
  expr: string,
  rest: Rest = {},
): Panel => ({
  kind: 'number',
  title,
  unit,
  meaning,
  queries: queriesOf({ [title]: expr }),
  ...rest,
})

const queriesOf = (lines: Readonly<Record<string, string>>): readonly Query[] =>
  Object.entries(lines).map(([legend, expr]) => ({ legend, expr }))
