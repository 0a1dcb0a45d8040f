import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Creates a self-signed certificate for names such as `DNS:hook.test` or `IP:127.0.0.1`. */
export async function certificate(names: string): Promise<{ cert: string; key: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=redrive.test', '-addext', `subjectAltName=${names}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const args = ['req', '-x509', ...curve, '-nodes', '-days', '1', ...name, '-keyout', key]
  await promisify(execFile)('openssl', [...args, '-out', cert])
  const pair = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  await rm(folder, { recursive: true })
  return pair
}
