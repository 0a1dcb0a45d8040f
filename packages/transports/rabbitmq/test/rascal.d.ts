// Types of rascal, which has none; only the part that the test uses.
declare module 'rascal' {
  interface Subscription {
    on(
      name: 'message',
      listener: (
        message: unknown,
        content: unknown,
        ackOrNack: (error: Error, recovery: readonly object[]) => void,
      ) => void,
    ): void
    cancel(): Promise<void>
  }

  interface Broker {
    on(name: 'error', listener: (error: Error) => void): void
    subscribe(name: string): Promise<Subscription>
    shutdown(): Promise<void>
  }

  const rascal: {
    readonly BrokerAsPromised: { create(config: object): Promise<Broker> }
    withDefaultConfig(config: object): object
  }
  // oxlint-disable-next-line import/no-default-export -- its exports are made at run time
  export default rascal
}
