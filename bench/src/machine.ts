import { availableParallelism, cpus, loadavg } from 'node:os'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly node: string
  readonly platform: string
  readonly loadAverage: readonly number[]
}

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown cpu',
    cores: availableParallelism(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    loadAverage: loadavg(),
  }
}
