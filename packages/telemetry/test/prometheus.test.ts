import { business } from '@redrive/core'
import { createEmitter } from '@redrive/runtime'
import { recordingDeadLetters, recordingSink } from '@redrive/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prometheus } from '../src/index.ts'
import { PriceMismatch, shop, unreachable } from './shop.ts'

/** A line of the text format: a comment or a sample. */
const LINE =
  /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? [0-9.e+-]+)$/

function observed() {
  const metrics = prometheus()
  onTestFinished(() => metrics.close())
  const lines = () => metrics.text().trimEnd().split('\n')
  return {
    metrics,
    lines,
    /** The samples of a metric. */
    samples: (name: string) =>
      lines().filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)),
  }
}

describe('the metrics of a consumer', () => {
  it('count successes, retries and dead letters', async () => {
    const { samples } = observed()
    const { clock, send, start } = shop()
    await start(
      ({ body }, { runs }) => {
        if (body === 'flaky' && runs < 1) throw unreachable()
        if (body === 'wrong') throw new PriceMismatch('price 3 of order 4711 is not 4')
      },
      { classify: [business(PriceMismatch)] },
    )
    for (const body of ['good', 'good', 'flaky', 'wrong']) send(body)
    await clock.advance('2m')

    expect(samples('redrive_consumer_success_total')).toEqual([
      'redrive_consumer_success_total{source="orders",handler="billing"} 3',
    ])
    expect(samples('redrive_retry_success_total')).toEqual([
      'redrive_retry_success_total{source="orders",handler="billing"} 1',
    ])
    expect(samples('redrive_consumer_failure_total').sort()).toEqual([
      'redrive_consumer_failure_total{source="orders",handler="billing",class="business",error_type="PriceMismatch"} 1',
      'redrive_consumer_failure_total{source="orders",handler="billing",class="transient",error_type="Error"} 1',
    ])
    expect(samples('redrive_dlq_saved_total')).toEqual([
      'redrive_dlq_saved_total{source="orders",handler="billing",class="business",reason="terminal",error_type="PriceMismatch"} 1',
    ])
    expect(samples('event_dlq_total')).toEqual([
      'event_dlq_total{source_topic="orders",handler="billing",class="business",reason="terminal",error_type="PriceMismatch"} 1',
    ])
    expect(samples('redrive_retry_permanent_failure_total')).toHaveLength(1)
    expect(samples('redrive_process_duration_seconds_count').sort()).toEqual([
      'redrive_process_duration_seconds_count{source="orders",handler="billing",system="memory",result="failure"} 2',
      'redrive_process_duration_seconds_count{source="orders",handler="billing",system="memory",result="success"} 3',
    ])
    expect(samples('event_dlq_processing_attempts_bucket')[0]).toBe(
      'event_dlq_processing_attempts_bucket{source_topic="orders",handler="billing",le="1"} 1',
    )
  })

  it('show the state of the breaker and of the consumer', async () => {
    const { samples } = observed()
    const { clock, send, start } = shop()
    const consumer = await start(() => Promise.reject(unreachable()), {
      breaker: { trip: { kind: 'consecutive', failures: 1 } },
      dependency: 'payments',
    })
    expect(samples('redrive_circuit_breaker_state')).toEqual([
      'redrive_circuit_breaker_state{dependency="payments"} 0',
    ])
    send('any')
    await clock.settle()
    expect(consumer.health().breaker.phase).toBe('open')
    expect(samples('redrive_circuit_breaker_state')).toEqual([
      'redrive_circuit_breaker_state{dependency="payments"} 2',
    ])
    expect(samples('redrive_circuit_breaker_transition_total')).toEqual([
      'redrive_circuit_breaker_transition_total{dependency="payments",to="open"} 1',
    ])
    expect(samples('redrive_consumer_health')).toEqual([
      'redrive_consumer_health{source="orders",handler="billing"} 0',
    ])
    expect(samples('redrive_consumer_paused_total')).toEqual([
      'redrive_consumer_paused_total{source="orders",reason="dependency_unhealthy"} 1',
    ])
  })

  it('keep the totals of a dependency after its consumer has stopped', async () => {
    const { samples } = observed()
    const { clock, send, start } = shop()
    const first = await start(() => undefined, { dependency: 'stock' })
    send('any')
    await clock.settle()
    const calls = () => samples('redrive_circuit_breaker_call_total')
    expect(calls()).toEqual(['redrive_circuit_breaker_call_total{dependency="stock"} 1'])
    await first.stop({ drain: 0 })
    expect(calls()).toEqual(['redrive_circuit_breaker_call_total{dependency="stock"} 1'])
    expect(samples('redrive_consumer_connected')).toEqual([])
  })

  it('limit the values of a label, and contain no text of messages', async () => {
    const { samples, metrics } = observed()
    const { clock, send, start } = shop()
    await start(
      ({ body }) => {
        throw Object.assign(new Error(`secret ${String(body)}`), { name: `Failure${String(body)}` })
      },
      { retry: { attempts: 1 }, poison: 'off', concurrency: 500 },
    )
    for (let number = 0; number < 300; number++) send(number)
    await clock.settle()
    const saved = samples('redrive_dlq_saved_total')
    expect(saved).toHaveLength(201)
    expect(saved.at(-1)).toMatch(/error_type="other"} 100$/)
    expect(metrics.text()).not.toContain('secret')
  })

  it('are in the text format of Prometheus', async () => {
    const { lines } = observed()
    const { clock, send, start } = shop()
    await start(() => {
      throw Object.assign(new Error('x'), { name: 'With "quotes"\nand lines' })
    })
    send('any')
    await clock.advance('10m')
    expect(lines().filter((line) => !LINE.test(line.replaceAll('\\"', '')))).toEqual([])
    const families = lines().filter((line) => line.startsWith('# TYPE'))
    expect(new Set(families).size).toBe(families.length)
  })
})

describe('the metrics of an emitter', () => {
  it('count the events of each sink by result, also after it was closed', async () => {
    const { samples } = observed()
    const good = recordingSink({ name: 'good' })
    const bad = recordingSink({
      name: 'bad',
      onSend: () => Promise.reject(new PriceMismatch('no')),
    })
    const events = createEmitter({
      sinks: { good, bad: { sink: bad, policy: { classify: [business(PriceMismatch)] } } },
      store: recordingDeadLetters(),
      queue: { maxEvents: 100, onFull: 'store' },
    })
    await events.emit({ type: 'order.placed', data: {} })
    const delivered = 'redrive_emitter_event_total{sink="good",result="delivered"} 1'
    expect(samples('redrive_emitter_event_total')).toContain(delivered)
    expect(samples('redrive_emitter_failure_total')).toHaveLength(1)
    await events.close()
    expect(samples('redrive_emitter_event_total')).toContain(delivered)
    expect(samples('redrive_emitter_in_flight')).toEqual([])
  })
})
