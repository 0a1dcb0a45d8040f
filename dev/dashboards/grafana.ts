/** Writes the dashboards as Grafana imports them. */
import { CONSUMER } from './consumer.ts'
import { EMITTER } from './emitter.ts'
import { FLEET } from './fleet.ts'
import type { Dashboard, Panel, Section, Unit } from './panel.ts'
import { labelsOf, type Metric, queriesFor, type Variable } from './query.ts'
import { REPLAY } from './replay.ts'
import { SOURCE } from './source.ts'

export const DASHBOARDS: readonly Dashboard[] = [FLEET, SOURCE, CONSUMER, REPLAY, EMITTER]

/** Units as Grafana names them. */
const UNITS: Readonly<Record<Unit, string>> = {
  count: 'short',
  perSecond: 'cps',
  seconds: 's',
  share: 'percentunit',
  bytes: 'bytes',
}
/** The metric whose labels list the values of a variable. */
const VALUES: Readonly<Record<Variable, Metric>> = {
  source: 'redrive.consumer.connected',
  handler: 'redrive.consumer.connected',
  sink: 'redrive.emitter.in_flight',
  dependency: 'redrive.circuit_breaker.state',
}
/** 39: Grafana 10.4. Later releases convert it when they import a dashboard. */
const SCHEMA_VERSION = 39
/** The width of a dashboard, as Grafana counts it. */
const COLUMNS = 24
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const
const SIZES = { chart: { w: 12, h: 8 }, number: { w: 4, h: 4 } } as const

/** Returns the text of the file of a dashboard. */
export const dashboardText = (dashboard: Dashboard): string =>
  `${JSON.stringify(asGrafana(dashboard), undefined, 2)}\n`

function asGrafana({ name, title, meaning, variables, sections }: Dashboard) {
  return {
    uid: `redrive-${name}`,
    title,
    description: meaning,
    tags: ['redrive'],
    editable: true,
    graphTooltip: 1,
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    links: [
      {
        type: 'dashboards',
        title: 'Redrive',
        tags: ['redrive'],
        asDropdown: false,
        keepTime: true,
        includeVars: true,
      },
    ],
    templating: { list: [datasource(), ...variables.map(variable)] },
    panels: placed(sections),
  }
}

const datasource = () => ({
  name: 'datasource',
  label: 'Prometheus',
  type: 'datasource',
  query: 'prometheus',
})

function variable(name: Variable) {
  const metric = VALUES[name]
  if (!labelsOf(metric).includes(name)) throw new Error(`${metric} has no label ${name}`)
  const { series } = queriesFor([])
  return {
    name,
    label: name,
    type: 'query',
    datasource: DATASOURCE,
    query: { query: `label_values(${series(metric)}, ${name})`, refId: name },
    includeAll: true,
    // All sources of the server, also those without a consumer in this Prometheus. Not `.*`: failures of sinks have no handler.
    allValue: '.+',
    multi: true,
    refresh: 2,
    sort: 1,
    current: { text: 'All', value: '$__all' },
  }
}

/** Places the panels of each section from left to right, below its title. */
function placed(sections: readonly Section[]): readonly object[] {
  const all: object[] = []
  let y = 0
  const add = (panel: object) => all.push({ id: all.length + 1, ...panel })
  for (const { title, panels } of sections) {
    add({ type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 } })
    y += 1
    let x = 0
    let height = 0
    for (const panel of panels) {
      const { w, h } = SIZES[panel.kind]
      if (x + w > COLUMNS) [x, y, height] = [0, y + height, 0]
      add({ ...drawn(panel), gridPos: { x, y, w, h } })
      x += w
      height = Math.max(height, h)
    }
    y += height
  }
  return all
}

function drawn(panel: Panel) {
  const { kind, title, meaning, queries } = panel
  return {
    type: kind === 'chart' ? 'timeseries' : 'stat',
    title,
    description: meaning,
    datasource: DATASOURCE,
    targets: queries.map(({ expr, legend }, at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      ...(kind === 'number' ? { instant: true, range: false } : {}),
    })),
    fieldConfig: {
      defaults: { unit: UNITS[panel.unit], min: 0, ...stateNames(panel), ...thresholds(panel) },
      overrides: [],
    },
    options:
      kind === 'chart'
        ? {
            legend: { displayMode: 'list', placement: 'bottom' },
            tooltip: { mode: 'multi', sort: 'desc' },
          }
        : {
            colorMode: 'value',
            graphMode: 'none',
            reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
          },
  }
}

function stateNames({ states }: Panel) {
  if (states === undefined) return {}
  const options = Object.fromEntries(states.map((text, at) => [String(at), { text, index: at }]))
  const lines = { lineInterpolation: 'stepAfter', lineWidth: 2 }
  return {
    max: states.length - 1,
    decimals: 0,
    mappings: [{ type: 'value', options }],
    custom: lines,
  }
}

function thresholds({ redFrom }: Panel) {
  if (redFrom === undefined) return {}
  const steps = [
    { color: 'green', value: null },
    ...(redFrom > 1 ? [{ color: 'yellow', value: 1 }] : []),
    { color: 'red', value: redFrom },
  ]
  return { color: { mode: 'thresholds' }, thresholds: { mode: 'absolute', steps } }
}
