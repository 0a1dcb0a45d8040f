const {
  RABBITMQ_URL = 'amqp://guest:guest@localhost',
  QUEUE_PREFIX = '',
  PORT = '3000',
} = process.env

export const url: string = RABBITMQ_URL
export const port: number = Number(PORT)

/** Several copies of the service can use one broker. */
export const queueOf = (name: string): string => `${QUEUE_PREFIX}${name}`
