/**
 * The attribute with the name of the broker. OpenTelemetry renamed `messaging.system`; users choose with
 * `OTEL_SEMCONV_STABILITY_OPT_IN`: absent: the old name, `messaging`: the new one, `messaging/dup`: both.
 */
export function systemAttributes(
  system: string,
  optIn: string = process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? '',
): Readonly<Record<string, string>> {
  const chosen = optIn.split(',').map((one) => one.trim())
  if (chosen.includes('messaging/dup')) {
    return { 'messaging.system': system, 'messaging.system.name': system }
  }
  return chosen.includes('messaging')
    ? { 'messaging.system.name': system }
    : { 'messaging.system': system }
}
