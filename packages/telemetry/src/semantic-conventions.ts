/** Returns the attribute with the name of the broker. */
export type SystemAttributes = (system: string) => Readonly<Record<string, string>>

/**
 * Reads how the name of the broker is exported. OpenTelemetry renamed `messaging.system`; users choose with
 * `OTEL_SEMCONV_STABILITY_OPT_IN`: absent: the old name, `messaging`: the new one, `messaging/dup`: both. Call it
 * once, because it reads the environment, which is slow.
 */
export function systemAttributes(
  optIn: string = process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? '',
): SystemAttributes {
  const chosen = optIn.split(',').map((one) => one.trim())
  if (chosen.includes('messaging/dup')) {
    return (system) => ({ 'messaging.system': system, 'messaging.system.name': system })
  }
  return chosen.includes('messaging')
    ? (system) => ({ 'messaging.system.name': system })
    : (system) => ({ 'messaging.system': system })
}
