import type { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core'
import type { Handler } from '@redrive/runtime'
import { HANDLER, type RedriveHandlerOptions } from './decorator.ts'

/** A decorated method of a provider or controller. */
export interface FoundHandler {
  /** `OrderService.charge`. */
  readonly name: string
  readonly options: RedriveHandlerOptions
  readonly handle: Handler
}

export interface HandlerSearch {
  readonly discovery: DiscoveryService
  readonly scanner: MetadataScanner
  readonly reflector: Reflector
}

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number]
type Methods = Record<string, Handler>

/** Returns the decorated methods of all providers and controllers. */
export function findHandlers(search: HandlerSearch): readonly FoundHandler[] {
  const { discovery } = search
  const seen = new Set<unknown>()
  const found: FoundHandler[] = []
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    // An alias of a provider has the same instance.
    const instance: unknown = wrapper.instance
    if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue
    seen.add(instance)
    found.push(...handlersOf(wrapper, instance as Methods, search))
  }
  refuseRepeated(found)
  return found
}

function handlersOf(
  wrapper: Wrapper,
  instance: Methods,
  { scanner, reflector }: HandlerSearch,
): readonly FoundHandler[] {
  const prototype = Object.getPrototypeOf(instance) as Methods | null
  if (prototype === null) return []
  return scanner.getAllMethodNames(prototype).flatMap((method) => {
    const target = prototype[method]
    const options =
      target === undefined ? undefined : reflector.get<RedriveHandlerOptions>(HANDLER, target)
    if (options === undefined) return []
    const name = `${instance.constructor.name}.${method}`
    if (!wrapper.isDependencyTreeStatic()) throw requestScoped(name)
    return [{ name, options, handle: (message, context) => instance[method]?.(message, context) }]
  })
}

const requestScoped = (name: string) =>
  new Error(
    `@Redrive cannot be used on ${name}, because its class or one of its dependencies is request-scoped. A message has no request: use the default scope.`,
  )

/** Two consumers of the same method would compete for the messages, in one process. */
function refuseRepeated(found: readonly FoundHandler[]): void {
  const names = found.map(({ name }) => name)
  const repeated = names.find((name, at) => names.indexOf(name) !== at)
  if (repeated === undefined) return
  throw new Error(
    `@Redrive on ${repeated} was found twice. Provide its class in one module, and export it to the others. Two classes need different names.`,
  )
}
