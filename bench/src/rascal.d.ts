// Types of rascal, which has none; only the part that the benchmark uses.
declare module 'rascal' {
  export interface Recovery {
    readonly strategy: 'republish' | 'nack'
    readonly attempts?: number
  }

  export interface Session {
    on(
      event: 'message',
      listener: (
        message: unknown,
        content: unknown,
        ackOrNack: (error?: Error, recovery?: readonly Recovery[]) => void,
      ) => void,
    ): void
    on(event: 'error', listener: (error: Error) => void): void
    cancel(): Promise<void>
  }

  export interface Broker {
    on(event: 'error', listener: (error: Error) => void): void
    subscribe(name: string): Promise<Session>
    shutdown(): Promise<void>
  }

  export interface Config {
    readonly vhosts: Readonly<Record<string, unknown>>
    readonly subscriptions: Readonly<Record<string, unknown>>
  }

  const rascal: {
    withDefaultConfig(config: Config): Config
    readonly BrokerAsPromised: { create(config: Config): Promise<Broker> }
  }
  // oxlint-disable-next-line import/no-default-export -- its exports are made at run time
  export default rascal
}
