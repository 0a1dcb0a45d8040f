export interface Config {
  readonly databaseUrl: string
  readonly rabbitmqUrl: string
  /** Exchange for the shop's events. Its owner declares it: here, the subscribers. */
  readonly exchange: string
  readonly paymentsUrl: string
  /** Currencies covered by the contract with the payment gateway. */
  readonly currencies: readonly string[]
  /** How soon another process takes over from a dead process. */
  readonly leaseMs: number
}

/**
 * Reads the configuration. The defaults are the servers that `dev/services up postgres rabbitmq`
 * starts.
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return {
    databaseUrl: env['DATABASE_URL'] ?? 'postgres://redrive@127.0.0.1:25432/redrive_example_orders',
    rabbitmqUrl: env['RABBITMQ_URL'] ?? 'amqp://guest:guest@127.0.0.1:25700',
    exchange: env['SHOP_EXCHANGE'] ?? 'shop',
    paymentsUrl: env['PAYMENTS_URL'] ?? 'http://127.0.0.1:8090',
    currencies: (env['CURRENCIES'] ?? 'EUR,USD').split(','),
    leaseMs: Number(env['LEASE_MS'] ?? 30_000),
  }
}
