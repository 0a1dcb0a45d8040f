import type { Draw } from './draw.ts'
import { type Families, type Sample, told } from './family.ts'

const LISTENER =
  "Listener method 'public void com.acme.orders.OrderListener.onOrder(com.acme.orders.OrderEvent)' threw exception"

/** Returns what Spring Kafka writes: the listener's exception, with the real cause further down. */
function spring(draw: Draw, type: string, message: string, method: string): Sample {
  const at = (frame: string) => `\tat ${frame}:${draw.int(20, 400)})`
  const generated = `\tat com.acme.orders.OrderListener$$Lambda/0x${draw.hex(16)}.run(Unknown Source)`
  const stack = [
    `org.springframework.kafka.listener.ListenerExecutionFailedException: ${LISTENER}`,
    at(
      'org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer.decorateException(KafkaMessageListenerContainer.java',
    ),
    ...draw.several(30, 40, () =>
      at('org.springframework.kafka.listener.adapter.HandlerAdapter.invoke(HandlerAdapter.java'),
    ),
    at('java.base/java.util.concurrent.CompletableFuture.run(CompletableFuture.java'),
    `Caused by: ${type}: ${message}`,
    at('java.base/java.util.Objects.requireNonNull(Objects.java'),
    generated,
    at(`com.acme.orders.${method}(${method.split('.')[0]}.java`),
    at('com.acme.orders.OrderListener.onOrder(OrderListener.java'),
    `\t... ${draw.int(10, 30)} more`,
  ].join('\n')
  return told({ type, message: LISTENER, stack })
}

const STATE = 'java.lang.IllegalStateException'
const NULL = 'java.lang.NullPointerException'

/** Returns the exception's own message, as from a listener without a wrapper. */
function direct(draw: Draw, type: string, message: string): Sample {
  const stack = `${type}: ${message}\n\tat com.acme.billing.Billing.bill(Billing.java:${draw.int(1, 300)})`
  return told({ type, message, stack })
}

export const FOREIGN: Families = {
  'spring: order is closed': (draw) =>
    spring(
      draw,
      STATE,
      `Order ${draw.id()} is closed since ${draw.at().toISOString()}`,
      'OrderService.change',
    ),
  'spring: order has no address': (draw) =>
    spring(draw, STATE, `Order ${draw.id()} has no address`, 'OrderService.change'),
  'spring: null in total': (draw) =>
    spring(
      draw,
      NULL,
      'Cannot invoke "java.math.BigDecimal.scale()" because the return value is null',
      'Pricing.total',
    ),
  'spring: null in tax': (draw) =>
    spring(
      draw,
      NULL,
      'Cannot invoke "java.math.BigDecimal.scale()" because the return value is null',
      'Pricing.tax',
    ),
  'spring: price is no number': (draw) =>
    direct(
      draw,
      'com.fasterxml.jackson.databind.exc.InvalidFormatException',
      `Cannot deserialize value of type \`java.math.BigDecimal\` from String "${draw.word()}": not a valid representation\n at [Source: (String)"{"id":${draw.id()},"note":"${draw.word()}","lin"[truncated ${draw.int(1, 900)} chars]; line: ${draw.int(1, 9)}, column: ${draw.int(1, 500)}] (through reference chain: com.acme.Order["lines"]->java.util.ArrayList[${draw.int(0, 40)}]->com.acme.Line["price"])`,
    ),
  'spring: invoice number taken': (draw) =>
    direct(
      draw,
      'org.springframework.dao.DuplicateKeyException',
      `ERROR: duplicate key value violates unique constraint "invoices_number_key"\n  Detail: Key (tenant, number)=(${draw.base36(5)}x, ${draw.id()}) already exists.`,
    ),
  'python: no customer in the payload': (draw) =>
    direct(
      draw,
      'KeyError',
      `field 'customer_id' missing in <Order object at 0x7f${draw.hex(10)}> line ${draw.int(1, 99)}`,
    ),
  'python: no total in the payload': (draw) =>
    direct(
      draw,
      'KeyError',
      `field 'total' missing in <Order object at 0x7f${draw.hex(10)}> line ${draw.int(1, 99)}`,
    ),
  'rabbitmq: rejected': () => broker('rejected'),
  'rabbitmq: expired': () => broker('expired'),
}

/** Returns a failure as a broker queue reports it: only the reason. */
function broker(reason: string): Sample {
  const message = `the broker dead-lettered it: ${reason}`
  return { told: { type: undefined, message, stack: undefined, at: undefined, attempts: 1 } }
}
