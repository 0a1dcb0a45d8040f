import { describe, expect, it } from 'vitest'
import { type Candidate, type Clock, type MeasureOptions, measure } from '../src/harness.ts'

const options: MeasureOptions = {
  rounds: 12,
  sampleMs: 1,
  warmupRounds: 2,
  seed: 1,
  maxCount: 100_000,
  twinOf: 'steady',
}

/** A clock that advances only when a candidate works, so that every figure is known. */
class WorkClock implements Clock {
  wall = 0
  cpu = 0
  wallNs(): number {
    return this.wall
  }
  cpuNs(): number {
    return this.cpu
  }
  worker(name: string, wallNs: number, cpuNs: number, log: string[] = []): Candidate {
    return {
      name,
      run: async (count) => {
        log.push(name)
        this.wall += count * wallNs
        this.cpu += count * cpuNs
      },
    }
  }
}

describe('measure', () => {
  it('reports wall and CPU cost per message for each round, and the twin', async () => {
    const clock = new WorkClock()
    const candidates = [clock.worker('steady', 100, 40), clock.worker('slow', 2_500, 50)]
    const { series, twin } = await measure(candidates, options, clock)
    expect(twin).toEqual({ of: 'steady', name: 'steady (again)' })
    expect(series.map(({ name }) => name)).toEqual(['steady', 'slow', 'steady (again)'])
    expect(series.map(({ wallNs }) => wallNs)).toEqual(
      [100, 2_500, 100].map((cost) => Array.from({ length: 12 }, () => cost)),
    )
    expect(series.map(({ cpuNs }) => cpuNs[0])).toEqual([40, 50, 40])
  })

  it('gives each candidate enough messages to fill a sample', async () => {
    const clock = new WorkClock()
    const candidates = [clock.worker('steady', 100, 1), clock.worker('slow', 2_500, 1)]
    const { series } = await measure(candidates, options, clock)
    expect(series.map(({ count }) => count)).toEqual([10_000, 400, 10_000])
  })

  it('gives the twin samples of the same size, even while the machine slows down', async () => {
    const clock = new WorkClock()
    let costNs = 100
    const slowing: Candidate = {
      name: 'steady',
      run: async (count) => {
        clock.wall += count * costNs
        clock.cpu += count
        costNs *= 1.1
      },
    }
    const { series } = await measure([slowing], options, clock)
    expect(series[1]?.count).toBe(series[0]?.count)
  })

  it('never requests more messages than allowed, and at least one', async () => {
    const clock = new WorkClock()
    const candidates = [clock.worker('steady', 0.001, 1), clock.worker('huge', 1e9, 1)]
    const { series } = await measure(candidates, options, clock)
    expect(series.map(({ count }) => count)).toEqual([100_000, 1, 100_000])
  })

  it('never requests fewer messages than the minimum of a sample', async () => {
    const clock = new WorkClock()
    const asked: number[] = []
    const slow: Candidate = {
      ...clock.worker('steady', 2_500, 1),
      prepare: async (count) => {
        asked.push(count)
      },
    }
    const { series } = await measure([slow], { ...options, minCount: 1_000 }, clock)
    expect(series[0]?.count).toBe(1_000)
    expect(Math.min(...asked)).toBe(1_000)
  })

  it('runs every candidate once per round, in changing order', async () => {
    const clock = new WorkClock()
    const log: string[] = []
    const candidates = ['steady', 'b', 'c'].map((name) => clock.worker(name, 1e6, 1, log))
    await measure(candidates, options, clock)
    const rounds = Array.from({ length: options.rounds }, (_, round) =>
      log.slice(log.length - 4 * (round + 1), log.length - 4 * round),
    )
    for (const round of rounds) {
      expect(round.toSorted()).toEqual(['b', 'c', 'steady', 'steady'])
    }
    expect(new Set(rounds.map(String)).size).toBeGreaterThan(4)
  })

  it('repeats the order for the same seed', async () => {
    const orders = [1, 1, 2].map(async (seed) => {
      const clock = new WorkClock()
      const log: string[] = []
      const candidates = ['steady', 'b', 'c'].map((name) => clock.worker(name, 1e6, 1, log))
      await measure(candidates, { ...options, seed }, clock)
      return log.join()
    })
    const [first, second, other] = await Promise.all(orders)
    expect(second).toBe(first)
    expect(other).not.toBe(first)
  })

  it('does not time preparing and verifying', async () => {
    const clock = new WorkClock()
    const slowAround: Candidate = {
      ...clock.worker('steady', 100, 10),
      prepare: async () => {
        clock.wall += 1e9
      },
      verify: () => {
        clock.wall += 1e9
      },
    }
    const { series } = await measure([slowAround], options, clock)
    expect(series[0]?.wallNs[0]).toBe(100)
  })

  it('waits for an asynchronous check, and fails with it', async () => {
    const clock = new WorkClock()
    const asked: Candidate = {
      ...clock.worker('steady', 100, 10),
      verify: async () => {
        await Promise.resolve()
        throw new Error('the queue is not empty')
      },
    }
    await expect(measure([asked], options, clock)).rejects.toThrow('Candidate "steady" failed')
  })

  it('names the candidate that failed its own check, and still closes all', async () => {
    const clock = new WorkClock()
    const closed: string[] = []
    const close = (name: string) => () => {
      closed.push(name)
    }
    const candidates: Candidate[] = [
      { ...clock.worker('steady', 100, 10), close: close('steady') },
      {
        ...clock.worker('lazy', 100, 10),
        close: close('lazy'),
        verify: () => {
          throw new Error('nothing was done')
        },
      },
    ]
    await expect(measure(candidates, options, clock)).rejects.toThrow('Candidate "lazy" failed')
    expect(closed).toEqual(['steady', 'lazy'])
  })

  it('rejects an unknown twin and two candidates with the same name', async () => {
    const clock = new WorkClock()
    const one = clock.worker('one', 100, 10)
    await expect(measure([one], options, clock)).rejects.toThrow('No candidate "steady"')
    const twice = { ...options, twinOf: 'one' }
    await expect(measure([one, one], twice, clock)).rejects.toThrow('the same name')
  })
})
