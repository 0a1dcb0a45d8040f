// Types of opossum, which has none; only the part that the benchmark uses.
declare module 'opossum' {
  // oxlint-disable-next-line import/no-default-export -- that is how it exports
  export default class CircuitBreaker<T> {
    constructor(
      action: () => Promise<T>,
      options?: {
        timeout?: number | false
        errorThresholdPercentage?: number
        rollingPercentilesEnabled?: boolean
        enableSnapshots?: boolean
      },
    )
    fire(): Promise<T>
    shutdown(): void
  }
}
