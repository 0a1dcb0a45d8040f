/** Text in a message, a comment or a name that tries to run as a script in a viewer's browser. */
export const scripts = (canary: string): readonly string[] => [
  `<img src=x onerror=self.canary=1>`,
  `<script>self.canary=1;fetch('${canary}/fetched')</script>`,
  `</script><script src=${canary}/script.js></script>`,
  `<svg/onload=self.canary=1>`,
  `"><iframe srcdoc='<script>top.canary=1</script>'>`,
  `javascript:self.canary=1//`,
  `<a href=javascript:self.canary=1 autofocus onfocus=self.canary=1>`,
  `<style>@import url(${canary}/style.css);</style>`,
  `<link rel=stylesheet href=${canary}/link.css>`,
  `{{constructor.constructor('self.canary=1')()}}`,
  '${self.canary=1}',
  `<object data=${canary}/object></object>`,
  `<meta http-equiv=refresh content=0;url=${canary}/refresh>`,
  `<base href=${canary}/>`,
]

/** Returns one string with all of them. */
export const hostileText = (canary: string): string => scripts(canary).join('\n')

/** Returns a string that is short enough for names. */
export const hostileName = (canary: string): string =>
  `<img src=${canary}/image onerror=self.canary=1>`

/** Texts that break out of an SQL statement, each in another way. */
export const STATEMENTS: readonly string[] = [
  `'`,
  `"`,
  `\\`,
  `\\'; select pg_sleep(3); --`,
  `' || pg_sleep(3)::text || '`,
  `' or pg_sleep(3) is not null or '`,
  `') or true --`,
  `')) or (select pg_sleep(3)) is not null --`,
  `%' or true or '%`,
  `'; drop table redrive_catalog.dead_letter cascade; --`,
  `/**/union/**/select/**/null--`,
  `$$; select pg_sleep(3); $$`,
  `(select pg_sleep(3))::text`,
  `count desc; select pg_sleep(3)`,
  `1_00000000-0000-0000-0000-000000000000' or true --`,
  `{a,"b\\"}`,
  `ʼ＇\u2019; select 1 --`,
  `\u0000`,
  `\ud800`,
  `%00' or 1=1`,
]
