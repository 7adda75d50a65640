//! What a device is called in the list of devices.

/** How the device is called in the list of devices: browser and system, as far as the browser tells. */
export function deviceLabel(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox|Edg|OPR|Chrome|Safari/.exec(agent)?.[0] ?? 'Browser';
  const system = /Windows|Android|iPhone|iPad|Mac OS|Linux/.exec(agent)?.[0];
  const known = browser === 'Edg' ? 'Edge' : browser === 'OPR' ? 'Opera' : browser;
  return system ? `${known}, ${system}` : known;
}
