import type { Page } from 'playwright-core'

/** Signs in at the provider as a person does. It ends at an address of the server. */
export async function signIn(page: Page, serverUrl: string, who: string): Promise<void> {
  const home = `${serverUrl}/api/v1/me`
  await page.goto(`${serverUrl}/auth/login?returnTo=/api/v1/me`)
  await page.fill('input[name=login]', who)
  await page.fill('input[name=password]', 'any')
  await page.click('button[type=submit]')
  await page.click('button[type=submit]')
  await page.waitForURL(home)
}
