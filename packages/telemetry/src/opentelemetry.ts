import {
  type Attributes,
  type Meter,
  metrics,
  type Observable,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { watchAll } from '@redrive/runtime/internal'
import { BoundedLabels } from './bounded-labels.ts'
import {
  type Label,
  type Labels,
  type Measurement,
  METRIC_NAMES,
  isFromState,
  type MetricName,
  rowOf,
} from './metrics.ts'
import { type AroundRun, observe } from './observe.ts'
import type { RecorderOf } from './run-recorders.ts'
import { systemAttributes } from './semantic-conventions.ts'
import { recordDecision, spansAround } from './spans.ts'

const NAME = '@redrive/telemetry'

export interface OpenTelemetryOptions {
  /** Creates the instruments. Default: the global meter provider. */
  readonly meter?: Meter
  /** Creates the spans. Default: the global tracer provider. `false`: no spans. */
  readonly tracer?: Tracer | false
}

/**
 * Observes all consumers and emitters of this process with OpenTelemetry: metrics, a span for each run of
 * a handler, and a span for each retry and dead letter. Call it once, after the SDK has started and
 * before the first consumer. Returns a function that ends it.
 */
export function openTelemetry({
  meter = metrics.getMeter(NAME),
  tracer = trace.getTracer(NAME),
}: OpenTelemetryOptions = {}): () => void {
  const instruments = instrumentsOf(meter)
  const systemOf = systemAttributes()
  const labels = new BoundedLabels()
  const duration = meter.createHistogram('messaging.process.duration', {
    unit: 's',
    description: rowOf('redrive.process.duration').meaning,
    advice: { explicitBucketBoundaries: [...(rowOf('redrive.process.duration').buckets ?? [])] },
  })
  const around = tracer === false ? undefined : spansAround(tracer, systemOf)
  const timed: AroundRun = (info, run) => {
    const { result, onEnd } = around?.(info, run) ?? { result: run(), onEnd: () => undefined }
    return {
      result,
      onEnd: (ended) => {
        const { error, durationMs } = ended
        const { source } = info.delivery
        const own = error === undefined ? { source } : { source, error_type: typeOf(error.cause) }
        duration.record(durationMs / 1_000, {
          ...systemOf(info.system),
          'messaging.operation.name': 'process',
          ...attributesOf(labels.bound(own)),
        })
        onEnd(ended)
      },
    }
  }
  const observation = observe(instruments.recorderOf, timed)
  const endState = instruments.observeState(() => observation.collect())
  const endSpans =
    tracer === false ? () => undefined : watchAll((event) => recordDecision(tracer, event))
  return () => {
    observation.close()
    endState()
    endSpans()
  }
}

const typeOf = (cause: unknown) => (cause instanceof Error ? cause.name : '_OTHER')

interface Instruments {
  readonly recorderOf: RecorderOf
  observeState(collect: () => readonly Measurement[]): () => void
}

function instrumentsOf(meter: Meter): Instruments {
  const added = new Map<MetricName, (value: number, attributes: Attributes) => void>()
  const observed = new Map<MetricName, Observable>()
  for (const metric of METRIC_NAMES) {
    // The semantic conventions name it `messaging.process.duration`.
    if (metric === 'redrive.process.duration') continue
    const { kind, unit, meaning: description, buckets } = rowOf(metric)
    const options = { unit, description }
    if (isFromState(metric)) {
      observed.set(
        metric,
        kind === 'gauge'
          ? meter.createObservableGauge(metric, options)
          : meter.createObservableCounter(metric, options),
      )
    } else if (kind === 'counter') {
      const counter = meter.createCounter(metric, options)
      added.set(metric, (value, attributes) => counter.add(value, attributes))
    } else {
      const advice = { explicitBucketBoundaries: [...(buckets ?? [])] }
      const histogram = meter.createHistogram(metric, { ...options, advice })
      added.set(metric, (value, attributes) => histogram.record(value, attributes))
    }
  }
  return {
    recorderOf(metric, labels) {
      const attributes = attributesOf(labels)
      const add = added.get(metric)
      return (value) => add?.(value, attributes)
    },
    observeState: (collect) => observeState(meter, observed, collect),
  }
}

/** Reads the state once for each collection, whatever the number of instruments. */
function observeState(
  meter: Meter,
  observed: ReadonlyMap<MetricName, Observable>,
  collect: () => readonly Measurement[],
): () => void {
  const callback = (result: {
    observe(to: Observable, value: number, labels: Attributes): void
  }) => {
    for (const { metric, value, labels } of collect()) {
      const instrument = observed.get(metric)
      if (instrument !== undefined) result.observe(instrument, value, attributesOf(labels))
    }
  }
  const all = [...observed.values()]
  meter.addBatchObservableCallback(callback, all)
  return () => meter.removeBatchObservableCallback(callback, all)
}

/** Attribute names of OpenTelemetry where it defines them; the others get the prefix `redrive.`. */
const ATTRIBUTES: Readonly<Partial<Record<Label, string>>> = {
  source: 'messaging.destination.name',
  error_type: 'error.type',
}

const attributesOf = (labels: Labels): Attributes =>
  Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [
      ATTRIBUTES[label as Label] ?? `redrive.${label}`,
      value,
    ]),
  )
