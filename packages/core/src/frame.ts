import { remembering } from './memo.ts'

/** Returns the frame of the user's code where the failure began, such as `charge payments.ts`. Line, column and directory differ between builds, so they are omitted. */
export function ownFrame(stack: string): string | undefined {
  let last: string | undefined
  // Line by line: the first one is nearly always enough.
  for (let start = 0; start <= stack.length; ) {
    const end = stack.indexOf('\n', start)
    const { frame, isPython } = readLine(stack.slice(start, end === -1 ? stack.length : end))
    // Python prints the calls from the outermost to the innermost one. All others print the innermost one first.
    if (frame !== NOT_OWN && !isPython) return frame
    if (frame !== NOT_OWN) last = frame
    if (end === -1) break
    start = end + 1
  }
  return last
}

interface Line {
  readonly frame: string
  readonly isPython: boolean
}

/** Failures come from few lines of code, and matching the forms of all languages takes longer than a lookup. */
const readLine = remembering((line): Line => {
  const python = fileFrame(PYTHON, line)
  return { frame: python ?? firstFrame(line) ?? NOT_OWN, isPython: python !== undefined }
})

/** Reads a line of V8, Java, .NET, PHP or Ruby. Returns undefined when it is not a frame. */
function firstFrame(line: string): string | undefined {
  // On Windows, a line of .NET ends with a carriage return, which the dot does not match.
  const text = /^\s*at (?:async )?(.*)/.exec(line)?.[1]
  if (text !== undefined) return managedFrame(text) ?? scriptFrame(text)
  return fileFrame(PHP, line) ?? fileFrame(RUBY, line)
}

/** Folders of packages and of the language itself. */
const PACKAGES =
  /(?:^|[\\/])(?:site-packages|dist-packages|vendor|gems|lib[\\/](?:python|ruby)[\d.]*)[\\/]|^</

/** `  File "/app/export.py", line 42, in orders` */
const PYTHON = /^\s{0,8}File "([^"]+)", line \d+, in (\S+)/
/** `#1 /app/src/Export.php(42): Acme\Export->orders()` */
const PHP = /^#\d+ ([^(]+)\(\d+\): ([^(]+)/
/** `/app/lib/export.rb:42:in 'Export#orders'` */
const RUBY = /^(?:\s*from )?(\S+\.rb):\d+:in ['`]([^']+)'/

/** Reads a line with a file and a name. Returns undefined when it has another form. */
function fileFrame(form: RegExp, line: string): string | undefined {
  const found = form.exec(line)
  if (found === null) return undefined
  const [, file, name] = found as unknown as readonly [string, string, string]
  return frameIn(file, name)
}

const frameIn = (file: string, name: string): string =>
  PACKAGES.test(file) ? NOT_OWN : `${name} ${baseName(file)}`

/** The result for a frame that is not the user's code. */
const NOT_OWN = ''

/**
 * Reads a frame of Java (`com.acme.Orders.charge(Orders.java:42)`) or .NET (`Acme.Orders.Charge(Order order)`):
 * a dotted name directly before its bracket. Returns undefined when it is neither.
 */
function managedFrame(text: string): string | undefined {
  // The module or class loader precedes a slash: `java.base/`, `app//`.
  const name = /^(?:[\w.@-]+\/{1,2})?([\w$<>`+|]+(?:\.{1,2}[\w$<>`+|/]+)+)(?:\[[^\]]*\])?\(/.exec(
    text,
  )?.[1]
  if (name === undefined) return undefined
  if (PLATFORM.test(name)) return NOT_OWN
  // Compilers number items without a name: `lambda$charge$3`, `<Charge>d__12`.
  return name.replace(/\d+/g, '')
}

/** Frames of the runtime and its frameworks. A name with `$$` or an address was generated. */
const PLATFORM =
  /^(?:javax?|jakarta|jdk|kotlinx?|scala|sun|com\.sun|com\.fasterxml|org\.(?:springframework|apache|hibernate|postgresql|jboss|bson)|com\.(?:rabbitmq|zaxxer|mongodb|google|amazonaws|mysql)|software\.amazon|io\.(?:netty|lettuce|micronaut|quarkus|grpc|smallrye)|reactor|feign|okhttp3?|retrofit2|groovy|System|Microsoft|NServiceBus|MassTransit|EasyNetQ|RabbitMQ|Npgsql|Newtonsoft|Polly|Dapper|MediatR|Confluent)\.|\$\$|\//

/** Reads a frame of V8. */
function scriptFrame(text: string): string {
  const { name, location } = parseFrame(text)
  return isOwn(location) ? `${name} ${baseName(location)}` : NOT_OWN
}

/** Splits `name (location)`. V8 writes only the location for a function without a name. */
function parseFrame(frame: string): { readonly name: string; readonly location: string } {
  const open = frame.endsWith(')') ? frame.indexOf(' (') : -1
  if (open === -1) return { name: '<anonymous>', location: frame }
  const name = frame.slice(0, open).replace(/ \[as .*$/, '')
  // Names of one or two letters come from a minifier and change with the next build.
  return { name: name.length > 2 ? name : '<anonymous>', location: frame.slice(open + 2, -1) }
}

/** Returns true for a file in a directory. `<anonymous>`, `native` and `index 0` of a Promise.all are not files. */
function isOwn(location: string): boolean {
  if (location.startsWith('node:') || /[\\/]node_modules[\\/]/.test(location)) return false
  return /[\\/]/.test(location)
}

/**
 * Matches the content hash that bundlers put into file names: hex, or eight characters with a digit or
 * an inner capital letter. `order-handlers.js` is a normal name.
 */
const BUILT = /(?:-(?=[\w-]*(?:\d|[\w-][A-Z]))[\w-]{8}|[-.][0-9a-f]{8,32})(?=\.)/

function baseName(location: string): string {
  const file = location.slice(Math.max(location.lastIndexOf('/'), location.lastIndexOf('\\')) + 1)
  // Dev servers append a query to the name.
  return file.replace(/[:?].*$/, '').replace(BUILT, '-<hash>')
}
