// Telemetry that is on only during the samples of one candidate, because it observes the whole process.
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { prometheus } from '@redrive/telemetry'
import { openTelemetry } from '@redrive/telemetry/opentelemetry'
import type { Contender, Stage } from './contender.ts'

/** Begins to observe. Returns a function that exports once and ends it. */
export type Telemetry = () => () => Promise<void> | void

/** Returns the candidate with this telemetry during each sample. */
export const observedBy =
  (telemetry: Telemetry, open: (stage: Stage) => Promise<Contender>) =>
  async (stage: Stage): Promise<Contender> => {
    const contender = await open(stage)
    let end: ReturnType<Telemetry> = () => undefined
    return {
      start() {
        end = telemetry()
        return contender.start()
      },
      async stop() {
        await contender.stop()
        await end()
        end = () => undefined
      },
      close: () => contender.close(),
    }
  }

/** Prometheus reads the metrics once in each sample, which is much more often than in production. */
export const prometheusRead: Telemetry = () => {
  const metrics = prometheus()
  return () => {
    metrics.text()
    metrics.close()
  }
}

const SUCCESS = { code: 0 }

/** Exporters that discard everything: a network is not under test. */
const discardMetrics: PushMetricExporter = {
  export: (_, done) => done(SUCCESS),
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
}
const discardSpans: SpanExporter = {
  export: (_, done) => done(SUCCESS),
  shutdown: () => Promise.resolve(),
}

/** One hour: only the flush at the end of a sample exports metrics. */
const NEVER_MS = 3_600_000

const meters = () =>
  new MeterProvider({
    readers: [
      new PeriodicExportingMetricReader({
        exporter: discardMetrics,
        exportIntervalMillis: NEVER_MS,
        exportTimeoutMillis: NEVER_MS,
      }),
    ],
  })

/** OpenTelemetry without spans. */
export const openTelemetryMetrics: Telemetry = () => {
  const provider = meters()
  const end = openTelemetry({ meter: provider.getMeter('bench'), tracer: false })
  return async () => {
    await provider.forceFlush()
    end()
    await provider.shutdown()
  }
}

/** OpenTelemetry with a span for each message and none left out by a sampler. */
export const openTelemetryTraces: Telemetry = () => {
  const provider = meters()
  const tracers = new TracerProvider({
    spanProcessors: [new BatchSpanProcessor({ exporter: discardSpans })],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const end = openTelemetry({
    meter: provider.getMeter('bench'),
    tracer: tracers.getTracer('bench'),
  })
  return async () => {
    await Promise.all([provider.forceFlush(), tracers.forceFlush()])
    end()
    context.disable()
    await Promise.all([provider.shutdown(), tracers.shutdown()])
  }
}
