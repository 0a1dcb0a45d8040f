/** `charge payments.ts`: line, column and directory differ between builds and machines, so they are left out. */
export function ownFrame(stack: string): string | undefined {
  for (const line of stack.split('\n')) {
    const text = /^\s*at (?:async )?(.*)$/.exec(line)?.[1]
    if (text === undefined) continue
    const frame = managedFrame(text) ?? scriptFrame(text)
    if (frame !== '') return frame
  }
  return undefined
}

/** What is not the user's own. */
const NOBODY = ''

/**
 * A frame of Java (`com.acme.Orders.charge(Orders.java:42)`) or .NET (`Acme.Orders.Charge(Order order)`):
 * a dotted name right before its bracket. Undefined: it is none.
 */
function managedFrame(text: string): string | undefined {
  // The module or class loader stands before a slash: `java.base/`, `app//`.
  const name = /^(?:[\w.@-]+\/{1,2})?([\w$<>`+|]+(?:\.{1,2}[\w$<>`+|/]+)+)(?:\[[^\]]*\])?\(/.exec(
    text,
  )?.[1]
  if (name === undefined) return undefined
  if (PLATFORM.test(name)) return NOBODY
  // Compilers number what has no name: `lambda$charge$3`, `<Charge>d__12`.
  return name.replace(/\d+/g, '')
}

/** Of the runtime and its frameworks; what has `$$` or an address was generated. */
const PLATFORM =
  /^(?:javax?|jakarta|jdk|kotlinx?|scala|sun|com\.sun|com\.fasterxml|org\.(?:springframework|apache|hibernate|postgresql)|System|Microsoft|NServiceBus|MassTransit)\.|\$\$|\//

/** A frame of V8. */
function scriptFrame(text: string): string {
  const { name, location } = parseFrame(text)
  return isOwn(location) ? `${name} ${baseName(location)}` : NOBODY
}

/** V8 writes `name (location)`, or the location alone for a function without a name. */
function parseFrame(frame: string): { readonly name: string; readonly location: string } {
  const open = frame.endsWith(')') ? frame.indexOf(' (') : -1
  if (open === -1) return { name: '<anonymous>', location: frame }
  const name = frame.slice(0, open).replace(/ \[as .*$/, '')
  // One or two letters are what a minifier left of a name, and other ones after the next build.
  return { name: name.length > 2 ? name : '<anonymous>', location: frame.slice(open + 2, -1) }
}

/** Without a directory it is no file: `<anonymous>`, `native`, `index 0` of a Promise.all. */
function isOwn(location: string): boolean {
  if (location.startsWith('node:') || /[\\/]node_modules[\\/]/.test(location)) return false
  return /[\\/]/.test(location)
}

/**
 * Bundlers put a hash of the content into the names of what they build: hex, or eight characters of
 * which one is a digit or a capital inside. `order-handlers.js` is a name.
 */
const BUILT = /(?:-(?=[\w-]*(?:\d|[\w-][A-Z]))[\w-]{8}|[-.][0-9a-f]{8,32})(?=\.)/

function baseName(location: string): string {
  const file = location.slice(Math.max(location.lastIndexOf('/'), location.lastIndexOf('\\')) + 1)
  // Dev servers put a query behind the name.
  return file.replace(/[:?].*$/, '').replace(BUILT, '-<hash>')
}
